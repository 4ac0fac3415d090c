import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { type FixedContent, fixedContent, madeOnce } from './fixedContent.ts';
import { type Guide, guidePage, HOME, README, readersPage, SEARCH_INDEX } from './guidePage.ts';
import { HTML } from './htmlPage.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The address of the service in the files, except where a proxy needs the one that it listens on. */
const EXAMPLE_ORIGIN = /(?<!proxy_pass )http:\/\/127\.0\.0\.1:3000\b/g;
const PICTURES: Record<string, string> = { '.svg': 'image/svg+xml', '.png': 'image/png' };

type Page = { address: string; make: () => Promise<FixedContent> };

/**
 * The README and the files of `docs/` as pages, with their pictures, a page that says which guide is for whom, and the index of
 * their search; none if these files are not installed. Examples show the address of this service, which is known once requests
 * arrive.
 */
export function guidePages(originOf: () => string): Page[] {
  const files = guideFiles();
  if (!files.some(isIndex)) return [];
  const all = madeOnce(async () => {
    const origin = originOf();
    return Promise.all(files.filter(isMarkdown).map((file) => render(file, origin)));
  });

  const pages = files.map((file) => ({
    address: addressOf(file),
    make: async () => {
      const type = PICTURES[extname(file)];
      if (type) return fixedContent(type, await readFile(join(ROOT, file)));
      const guides = await all();
      return fixedContent(HTML, guidePage(addressOf(file), guides));
    },
  }));
  const others = [
    { address: HOME, make: async () => fixedContent(HTML, readersPage(await all())) },
    { address: SEARCH_INDEX, make: async () => fixedContent(JSON_TYPE, JSON.stringify(indexOf(await all()))) },
  ];
  return [...pages, ...others].map(({ address, make }) => ({ address, make: madeOnce(make) }));
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** In the package of the service, the README of the project is in `docs`, too. */
function guideFiles(): string[] {
  const inRoot = readdirSync(ROOT);
  const inDocs = inRoot.includes('docs') ? readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }) : [];
  const index = inDocs.some(isIndex) ? [] : inRoot.filter(isIndex);
  return [
    ...index,
    ...inDocs.filter((name) => isMarkdown(name) || extname(name) in PICTURES).map((name) => `docs/${name}`),
  ];
}

const isIndex = (file: string) => basename(file) === 'README.md';
const isMarkdown = (file: string) => file.endsWith('.md');
const addressOf = (file: string) => (isIndex(file) ? README : `${HOME}/${basename(file, '.md')}`);

async function render(file: string, origin: string): Promise<Guide> {
  const { renderMarkdown, sectionsOf } = await import('./markdown.ts');
  const source = (await readFile(join(ROOT, file), 'utf8')).replaceAll(EXAMPLE_ORIGIN, () => origin);
  const rendered = renderMarkdown(source, (href) => linkTo(href, origin));
  return { ...rendered, sections: sectionsOf(rendered.html), address: addressOf(file) };
}

/** Links between the files, and to the service of the examples, lead to pages of this service; all others stay. */
function linkTo(href: string, origin: string): string {
  if (href.startsWith(origin)) return href.slice(origin.length) || '/';
  const [path = '', anchor] = href.split('#', 2);
  if (path === '' || /^[a-z]+:/.test(path)) return href;
  const address = path.endsWith('openapi.json') ? '/openapi.json' : addressOf(basename(path));
  return anchor === undefined ? address : `${address}#${anchor}`;
}

const indexOf = (guides: Guide[]) =>
  guides.flatMap(({ title, address, sections }) =>
    sections.map(({ id, heading, text }) => ({ href: `${address}#${id}`, guide: title, heading, text })),
  );
