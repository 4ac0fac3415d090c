import { addMenu } from '../menu.js';
import { loadDocument, operationsOf } from './apiDocument.js';
import { byId, element } from './dom.js';
import { introduction, operationView } from './operation.js';
import { addSidebar } from './sidebar.js';
import { addSession } from './signInDialog.js';

addMenu();
addSession();
try {
  await showDocument();
} catch (error) {
  byId('content').replaceChildren(element('p', { class: 'failure' }, /** @type {Error} */ (error).message));
}

/** Shows the operation that the address names after `#/`, else the introduction. */
async function showDocument() {
  const api = await loadDocument();
  const operations = operationsOf(api);
  const markCurrent = addSidebar(api);
  const show = () => {
    const operation = operations.find(({ operationId }) => location.hash === `#/${operationId}`);
    const name = location.hash.match(/^#\/(.+)/)?.[1];
    const missing = name && !operation ? [unknownOperation(name)] : [];
    byId('content').replaceChildren(...missing, operation ? operationView(operation, api) : introduction(api));
    document.title = `${operation?.summary ?? 'API'} · Deckhand`;
    markCurrent(location.hash);
  };

  addEventListener('hashchange', () => {
    // The skip link only moves the focus.
    if (location.hash === '#content') return;
    show();
    scrollTo(0, 0);
    byId('content').focus({ preventScroll: true });
  });
  show();
}

/** @param {string} name */
const unknownOperation = (name) =>
  element('p', { class: 'failure', role: 'alert' }, `There is no operation “${name}”. Look for it in the list.`);
