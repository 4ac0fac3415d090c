import { addSearch } from '../search.js';
import { areasOf, isSpecified, linkTo, SPECIFIED } from './apiDocument.js';
import { byId, element } from './dom.js';
import { findOperations, searchIndex } from './searchIndex.js';

/** @import { OpenApiDocument } from '../../../api/openapi/document.ts' */
/** @import { Described } from './apiDocument.js' */

/**
 * Lists the operations by noun, with a search. Returns a function that marks the current one.
 * @param {OpenApiDocument} document
 */
export function addSidebar(document) {
  for (const { name, nouns } of areasOf(document)) {
    const list = nouns.map((noun) => {
      const items = noun.operations.map((operation) => element('li', {}, linkOf(operation)));
      return element('details', {}, element('summary', {}, noun.name), element('ul', {}, ...items));
    });
    byId('listed').append(element('section', {}, element('h2', {}, name), ...list));
  }

  const index = searchIndex(document);
  addSearch((words) =>
    findOperations(index, words).map(({ operation, noun, why }) => ({
      href: linkTo(operation),
      title: operation.summary,
      place: why ? `${noun} · ${why}` : noun,
    })),
  );
  byId('listed').addEventListener('keydown', moveFocus);
  return markCurrent;
}

/** @param {Described} operation */
function linkOf(operation) {
  const { summary, path, deprecated } = operation;
  const badge = isSpecified(operation) ? [' ', badgeOf()] : [];
  return element(
    'a',
    { href: linkTo(operation), title: path },
    deprecated ? element('s', {}, summary) : summary,
    ...badge,
  );
}

export const badgeOf = () => element('small', { class: 'badge', title: SPECIFIED }, 'specified');

/** @param {string} hash */
function markCurrent(hash) {
  for (const link of byId('listed').querySelectorAll('a')) {
    if (link.hash !== hash) {
      link.removeAttribute('aria-current');
      continue;
    }
    link.setAttribute('aria-current', 'page');
    /** @type {HTMLDetailsElement} */ (link.closest('details')).open = true;
    link.scrollIntoView({ block: 'nearest' });
  }
}

/**
 * The arrow keys go through the operations that are shown.
 * @param {KeyboardEvent} event
 */
function moveFocus(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const shown = [.../** @type {NodeListOf<HTMLElement>} */ (byId('listed').querySelectorAll('details[open] a'))];
  const place = shown.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  if (step === undefined || place < 0) return;
  event.preventDefault();
  shown[place + step]?.focus();
}
