import { escapeHtml, htmlPage } from './htmlPage.ts';
import type { Rendered } from './markdown.ts';

export const HOME = '/docs/guides';
export const README = `${HOME}/readme`;
export const SEARCH_INDEX = `${HOME}/search.json`;

export type Guide = Rendered & {
  address: string;
  sections: { id: string; heading: string; text: string }[];
};

/** Who reads the guides. `rows` are those of the table in the README that links the guides by reader. */
const READERS = [
  {
    name: 'Call the API',
    lead: 'Over REST, with the typed client, or from an assistant.',
    start: '<a href="/docs">Try every operation on the API page</a>',
    rows: ['newcomers', 'callers of REST', 'in-house services', 'assistants'],
  },
  {
    name: 'Use the board',
    lead: 'Accounts, and boards that come from templates.',
    start: '<a href="/">Open the board</a>',
    rows: ['users and superadmins'],
  },
  { name: 'Run it', lead: 'Install, watch, back up and upgrade the service.', start: '', rows: ['operators'] },
  { name: 'Develop it', lead: 'How it is built, and why.', start: '', rows: ['developers', 'everybody'] },
];

type Shelf = { name: string; lead: string; start: string; guides: Guide[] };

/** The guides by reader, in the order in which the README links them. A row without a reader is under "More". */
export function shelvesOf(guides: Guide[]): Shelf[] {
  const index = guides.find(({ address }) => address === README)?.html ?? '';
  const rows = [...index.matchAll(/<tr>\s*<td>([^<]*)<\/td>\s*<td>(.*?)<\/td>\s*<\/tr>/gs)];
  const linked = rows.flatMap(([, row = '', cell = '']) => {
    const name = READERS.find((reader) => reader.rows.includes(row))?.name;
    return [...cell.matchAll(/href="([^"#]*)"/g)].map(([, address]) => ({ name, address }));
  });
  const isElsewhere = ({ address }: Guide) =>
    address !== README && !linked.some((link) => link.name && link.address === address);
  const others = guides.filter(isElsewhere);
  const shelves = READERS.map((reader) => ({
    ...reader,
    guides: linked
      .filter(({ name }) => name === reader.name)
      .flatMap(({ address }) => guides.filter((guide) => guide.address === address)),
  }));
  return others.length === 0 ? shelves : [...shelves, { name: 'More', lead: '', start: '', guides: others }];
}

/** The start page of the guides: which of them is for whom. */
export function readersPage(guides: Guide[]): string {
  const shelves = shelvesOf(guides).map(
    ({ name, lead, start, guides: onShelf }) => `<section>
<h2>${name}</h2>
<p>${lead}</p>
<ul class="shelf">
${onShelf.map(({ address, title, lead: first }) => `<li><a href="${address}">${escapeHtml(title)}</a><span>${escapeHtml(first)}</span></li>`).join('\n')}
</ul>
${start && `<p>${start}</p>`}
</section>`,
  );
  const content = `<h1>Guides</h1>
<p class="lead">What do you want to do? New here? <a href="${README}">Deckhand in short</a> has the first calls.</p>
<div class="readers">
${shelves.join('\n')}
</div>`;
  return layout('Guides', content, guides, HOME);
}

export function guidePage(address: string, guides: Guide[]): string {
  const { title, html } = guides.find((guide) => guide.address === address) as Guide;
  return layout(address === README ? IN_SHORT : title, html, guides, address);
}

const IN_SHORT = 'Deckhand in short';

function layout(title: string, content: string, guides: Guide[], current: string): string {
  const shelves = shelvesOf(guides).map(
    ({ name, guides: onShelf }) =>
      `<h2>${name}</h2>\n<ul>\n${onShelf.map((guide) => entryOf(guide, current)).join('\n')}\n</ul>`,
  );
  const index = guides
    .filter(({ address }) => address === README)
    .map((guide) => entryOf({ ...guide, title: IN_SHORT }, current));
  const body = `<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
<button type="button" class="button quiet menu" aria-expanded="false" aria-controls="sidebar">Menu</button>
<a class="brand" href="/">Deckhand</a>
<nav aria-label="Pages"><a href="/docs">API</a><a href="${HOME}" aria-current="true">Guides</a></nav>
</header>
<div class="columns">
<aside id="sidebar" class="sidebar" aria-label="All guides">
<input id="search" class="input" type="search" placeholder="Search (press /)" aria-label="Search the guides" autocomplete="off">
<p id="found" class="hint" role="status"></p>
<ol id="results" class="results" hidden></ol>
<nav id="listed" aria-label="Guides">
<ul>
${entryOf({ address: HOME, title: 'All guides', headings: [] }, current)}
${index.join('\n')}
</ul>
${shelves.join('\n')}
</nav>
</aside>
<main id="content" class="guide" tabindex="-1">
${content}</main>
</div>`;
  return htmlPage(title, body, { styles: ['docs.css', 'forms.css'], scripts: ['guides.js'] });
}

function entryOf({ address, title, headings }: Pick<Guide, 'address' | 'title' | 'headings'>, current: string): string {
  if (current !== address) return `<li><a href="${address}">${escapeHtml(title)}</a></li>`;
  const sections = headings.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`).join('');
  return `<li><a href="${address}" aria-current="page">${escapeHtml(title)}</a>${sections && `<ul>${sections}</ul>`}</li>`;
}
