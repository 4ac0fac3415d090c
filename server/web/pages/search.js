import { byId, element } from './api/dom.js';

/** @typedef {{ href: string, title: string, place?: string | undefined, why?: (Node | string)[] | undefined }} Found */

/**
 * The search box of the sidebar. `/` focuses it, the arrow keys go through what is found, Enter opens the first link, Escape clears
 * it. What is found stands in place of the usual list.
 * @param {(words: string[]) => Found[] | Promise<Found[]>} find
 */
export function addSearch(find) {
  const input = /** @type {HTMLInputElement} */ (byId('search'));
  const [results, usual] = [byId('results'), byId('listed')];
  const links = () => [...results.querySelectorAll('a')];

  const show = async () => {
    const words = wordsOf(input.value);
    const found = words.length === 0 ? [] : await find(words);
    if (words.join() !== wordsOf(input.value).join()) return;
    results.replaceChildren(...found.slice(0, MOST_SHOWN).map(itemOf));
    results.hidden = words.length === 0;
    usual.hidden = words.length > 0;
    byId('found').textContent = words.length === 0 ? '' : countOf(found.length);
  };
  const clear = () => {
    input.value = '';
    return show();
  };
  const failed = (/** @type {Error} */ { message }) => {
    byId('found').textContent = message;
  };

  input.addEventListener('input', () => show().catch(failed));
  input.addEventListener('keydown', async ({ key }) => {
    if (key === 'Escape') await clear();
    if (key === 'Enter') await show().then(() => links()[0]?.click(), failed);
    if (key === 'ArrowDown') links()[0]?.focus();
  });
  results.addEventListener('keydown', (event) => {
    const place = links().indexOf(/** @type {HTMLAnchorElement} */ (document.activeElement));
    const next = { ArrowDown: links()[place + 1], ArrowUp: links()[place - 1] ?? input, Escape: input }[event.key];
    if (!next) return;
    event.preventDefault();
    if (event.key === 'Escape') clear();
    next.focus();
  });
  focusBySlash(input);
}

const MOST_SHOWN = 60;

/** @param {number} count */
const countOf = (count) => (count > MOST_SHOWN ? `${count} found, the first ${MOST_SHOWN} shown` : `${count} found`);

/** @param {string} text */
export const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** @param {Found} found */
const itemOf = ({ href, title, place, why = [] }) =>
  element(
    'li',
    {},
    element('a', { href }, title, place ? element('small', {}, place) : undefined),
    why.length > 0 ? element('p', {}, ...why) : undefined,
  );

/** @param {HTMLInputElement} input */
function focusBySlash(input) {
  document.addEventListener('keydown', (event) => {
    const isWriting = event.target instanceof Element && event.target.closest('input, textarea, select, dialog');
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isWriting) return;
    event.preventDefault();
    if (input.offsetParent === null) /** @type {HTMLElement} */ (document.querySelector('.menu')).click();
    input.focus();
  });
}
