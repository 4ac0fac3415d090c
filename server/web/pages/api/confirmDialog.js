import { element } from './dom.js';

/** @import { Described } from './apiDocument.js' */

/** Operations that delete or end something, or change many projects at once. */
const NEEDS_CONFIRMATION =
  /\/(delete|sync|push|remove|revoke|leave|rotate|rotate-self|rotate-secret|sign-out-everywhere|drop-second-factor|deprecate.*)$/;

/**
 * Asks before such a request; resolves to whether it may be sent.
 * @param {Described} operation
 * @returns {Promise<boolean>}
 */
export function confirmSending({ path, summary }) {
  if (!NEEDS_CONFIRMATION.test(path)) return Promise.resolve(true);
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
        element('button', { class: 'button quiet', type: 'button', onclick: () => dialog.close() }, 'Cancel'),
        element('button', { class: 'button', type: 'button', onclick: () => dialog.close('send') }, 'Send it'),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
