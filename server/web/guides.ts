import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type FixedContent, fixedContent, madeOnce } from './fixedContent.ts';
import { escapeHtml, HTML, htmlPage } from './htmlPage.ts';
import type { Rendered } from './markdown.ts';

const ROOT = join(import.meta.dirname, '../..');
const HOME = '/docs/guides';
/** The address of the service in the files, except where a proxy needs the one that it listens on. */
const EXAMPLE_ORIGIN = /(?<!proxy_pass )http:\/\/127\.0\.0\.1:3000\b/g;

type Guide = Rendered & { file: string; address: string };

/**
 * The README and the files of `docs/` as pages, with their pictures; none if these files are not installed. Examples show the
 * address of this service, which is known once requests arrive.
 */
export function guidePages(originOf: () => string): { address: string; make: () => Promise<FixedContent> }[] {
  const files = guideFiles();
  const all = madeOnce(async () => {
    const origin = originOf();
    return inReadingOrder(await Promise.all(files.filter(isMarkdown).map((file) => render(file, origin))));
  });

  return files.map((file) => ({
    address: addressOf(file),
    make: madeOnce(async () => {
      if (!isMarkdown(file)) return fixedContent('image/svg+xml', await read(file));
      const guides = await all();
      const pages = guides.filter((guide) => guide.file === file).map((guide) => pageOf(guide, guides));
      return fixedContent(HTML, pages.join(''));
    }),
  }));
}

/** In the package of the service, the README of the project is in `docs`, too. */
function guideFiles(): string[] {
  const inRoot = readdirSync(ROOT);
  const inDocs = inRoot.includes('docs') ? readdirSync(join(ROOT, 'docs')) : [];
  const index = inDocs.some(isIndex) ? [] : inRoot.filter(isIndex);
  return [...index, ...inDocs.filter((name) => /\.(md|svg)$/.test(name)).map((name) => `docs/${name}`)];
}

const isIndex = (file: string) => basename(file) === 'README.md';
const isMarkdown = (file: string) => file.endsWith('.md');
const read = (file: string) => readFile(join(ROOT, file), 'utf8');
const addressOf = (file: string) => (isIndex(file) ? HOME : `${HOME}/${basename(file, '.md')}`);

async function render(file: string, origin: string): Promise<Guide> {
  const { renderMarkdown } = await import('./markdown.ts');
  const source = (await read(file)).replaceAll(EXAMPLE_ORIGIN, () => origin);
  return { ...renderMarkdown(source, (href) => linkTo(href, origin)), file, address: addressOf(file) };
}

/** Links between the files, and to the service of the examples, lead to pages of this service; all others stay. */
function linkTo(href: string, origin: string): string {
  if (href.startsWith(origin)) return href.slice(origin.length) || '/';
  const [path = '', anchor] = href.split('#', 2);
  if (path === '' || /^[a-z]+:/.test(path)) return href;
  const address = path.endsWith('openapi.json') ? '/openapi.json' : addressOf(basename(path));
  return anchor === undefined ? address : `${address}#${anchor}`;
}

/** The order in which the README links them. */
function inReadingOrder(guides: Guide[]): Guide[] {
  const index = guides.find(({ file }) => isIndex(file))?.html ?? '';
  const placeOf = ({ address, file }: Guide) => (isIndex(file) ? -1 : index.lastIndexOf(`href="${address}"`));
  return guides.toSorted((one, other) => placeOf(one) - placeOf(other));
}

function pageOf(guide: Guide, guides: Guide[]): string {
  const body = `<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
<button type="button" class="button quiet menu" aria-expanded="false" aria-controls="sidebar">Menu</button>
<a class="brand" href="/">Deckhand</a>
<nav aria-label="Pages"><a href="/docs">API</a><a href="${HOME}" aria-current="true">Guides</a></nav>
</header>
<div class="columns">
<aside id="sidebar" class="sidebar"><nav aria-label="Guides"><ul>
${guides.map((other) => entryOf(other, other === guide)).join('\n')}
</ul></nav></aside>
<main id="content" class="guide" tabindex="-1">
${guide.html}</main>
</div>`;
  return htmlPage(isIndex(guide.file) ? 'Guides' : guide.title, body, { styles: ['docs.css'], scripts: ['guides.js'] });
}

function entryOf({ title, address, headings }: Guide, isCurrent: boolean): string {
  if (!isCurrent) return `<li><a href="${address}">${escapeHtml(title)}</a></li>`;
  const sections = headings.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`);
  return `<li><a href="${address}" aria-current="page">${escapeHtml(title)}</a><ul>${sections.join('')}</ul></li>`;
}
