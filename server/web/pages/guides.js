import { byId, element } from './api/dom.js';
import { copyButton } from './copy.js';
import { addMenu } from './menu.js';
import { reach } from './reach.js';
import { addSearch } from './search.js';
import { findSections, snippetOf } from './sections.js';

/** @import { Section } from './sections.js' */

/** @type {Promise<Section[]> | undefined} */
let index;

/** Loaded when someone begins to search; after a failure, with the next letter again. */
function loadIndex() {
  index ??= fetchIndex().catch((error) => {
    index = undefined;
    throw error;
  });
  return index;
}

async function fetchIndex() {
  const { response, text } = await reach('/docs/guides/search.json');
  if (!response.ok) throw new Error(`The search could not be loaded: ${response.status}.`);
  return JSON.parse(text);
}

addMenu();
byId('search').addEventListener('focus', () => loadIndex().catch(() => undefined));
addSearch(async (words) => {
  return findSections(await loadIndex(), words).map(({ href, guide, heading, text }) => ({
    href,
    title: heading,
    place: heading === guide ? undefined : guide,
    why: snippetOf(text, words).map((part, at) => (at % 2 === 1 ? element('mark', {}, part) : part)),
  }));
});
for (const bar of document.querySelectorAll('.sample-bar')) {
  bar.append(copyButton(() => bar.nextElementSibling?.textContent ?? ''));
}
