import { groupsOf, linkTo } from './apiDocument.js';
import { byId, element } from './dom.js';

/** @import { OpenApiDocument } from '../../../api/openapi/document.ts' */
/** @import { Described } from './apiDocument.js' */

/**
 * Lists the operations by area, with a search. Returns a function that marks the current one.
 * @param {OpenApiDocument} document
 */
export function addSidebar(document) {
  const search = /** @type {HTMLInputElement} */ (byId('search'));
  /** @type {Entry[]} */
  const entries = [];
  for (const { name, areas } of groupsOf(document)) {
    const list = areas.map((area) => {
      const links = area.operations.map((operation) => entryOf(operation, area.name));
      const place = element(
        'details',
        {},
        element('summary', {}, area.name),
        element('ul', {}, ...links.map(({ item }) => item)),
      );
      entries.push(...links.map((entry) => ({ ...entry, area: place })));
      return place;
    });
    byId('operations').append(element('section', {}, element('h2', {}, name), ...list));
  }

  search.addEventListener('input', () => filter(entries, search.value));
  search.addEventListener('keydown', ({ key }) => {
    const first = entries.find(({ item }) => !item.hidden);
    if (key === 'Enter' && search.value.trim() !== '' && first) location.hash = first.link.hash;
    if (key === 'ArrowDown') first?.link.focus();
    if (key === 'Escape') {
      search.value = '';
      filter(entries, '');
    }
  });
  byId('operations').addEventListener('keydown', (event) => moveFocus(event, entries));
  focusBySlash(search);
  return (/** @type {string} */ hash) => markCurrent(entries, hash);
}

/** @typedef {{ item: HTMLLIElement, link: HTMLAnchorElement, text: string, area: HTMLDetailsElement }} Entry */

/**
 * @param {Described} operation
 * @param {string} area
 */
function entryOf(operation, area) {
  const { summary, path, description, operationId, deprecated } = operation;
  const link = element('a', { href: linkTo(operation), title: path }, deprecated ? element('s', {}, summary) : summary);
  const text = [area, summary, path, description, operationId].join(' ').toLowerCase();
  return { item: element('li', {}, link), link, text };
}

/**
 * Shows what has all of these words.
 * @param {Entry[]} entries
 * @param {string} sought
 */
function filter(entries, sought) {
  const words = sought.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { item, text } of entries) item.hidden = !words.every((word) => text.includes(word));
  for (const area of new Set(entries.map((entry) => entry.area))) {
    const isFound = entries.some((entry) => entry.area === area && !entry.item.hidden);
    area.hidden = !isFound;
    area.open = words.length > 0 ? isFound : area.querySelector('[aria-current]') !== null;
  }
  for (const section of document.querySelectorAll('#operations section')) {
    section.toggleAttribute('hidden', section.querySelector('details:not([hidden])') === null);
  }
  const count = entries.filter(({ item }) => !item.hidden).length;
  byId('found').textContent = words.length > 0 ? `${count} found` : '';
}

/**
 * @param {Entry[]} entries
 * @param {string} hash
 */
function markCurrent(entries, hash) {
  for (const { link, area } of entries) {
    const isCurrent = link.hash === hash;
    if (isCurrent) {
      link.setAttribute('aria-current', 'page');
      area.open = true;
      link.scrollIntoView({ block: 'nearest' });
    } else link.removeAttribute('aria-current');
  }
}

/**
 * The arrow keys go through the operations that are shown.
 * @param {KeyboardEvent} event
 * @param {Entry[]} entries
 */
function moveFocus(event, entries) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const shown = entries.filter(({ item, area }) => !item.hidden && area.open).map(({ link }) => link);
  const place = shown.indexOf(/** @type {HTMLAnchorElement} */ (document.activeElement));
  if (step === undefined || place < 0) return;
  event.preventDefault();
  shown[place + step]?.focus();
}

/** @param {HTMLInputElement} search */
function focusBySlash(search) {
  document.addEventListener('keydown', (event) => {
    const isWriting = event.target instanceof Element && event.target.closest('input, textarea, select, dialog');
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isWriting) return;
    event.preventDefault();
    if (search.offsetParent === null) /** @type {HTMLElement} */ (document.querySelector('.menu')).click();
    search.focus();
  });
}
