import { element } from './dom.js';

/** @import { Described } from './apiDocument.js' */

/**
 * Asks before a request that deletes or ends something, or changes many projects; resolves to whether it may be sent.
 * @param {Described} operation
 * @returns {Promise<boolean>}
 */
export function confirmSending({ summary, 'x-destructive': isDestructive }) {
  if (!isDestructive) return Promise.resolve(true);
  return new Promise((resolve) => {
    /** @type {HTMLDialogElement} */
    const dialog = element(
      'dialog',
      {
        'aria-labelledby': 'confirm-title',
        onclose: () => {
          dialog.remove();
          resolve(dialog.returnValue === 'send');
        },
      },
      element('h2', { id: 'confirm-title' }, `${summary}?`),
      element('p', {}, 'The request is not a test: it changes the data of this service.'),
      element(
        'div',
        { class: 'choices' },
        element('button', { class: 'button', type: 'button', onclick: () => dialog.close('send') }, 'Send it'),
        element(
          'button',
          { class: 'button quiet', type: 'button', autofocus: '', onclick: () => dialog.close() },
          'Cancel',
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
