import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { renderMarkdown, sectionsOf } from '../../server/web/markdown.ts';
import { findSections, snippetOf } from '../../server/web/pages/sections.js';
import { givenService, testService } from '../harness/service.ts';

const ROOT = join(import.meta.dirname, '../..');
const names = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
const addresses = [
  '/docs/guides',
  '/docs/guides/readme',
  ...names.map((name) => `/docs/guides/${name.replace('.md', '')}`),
];

let url: string;
beforeAll(async () => {
  ({ url } = await testService());
});

const read = async (address: string) => (await fetch(url + address)).text();
const found = (html: string, pattern: RegExp) => [...html.matchAll(pattern)].map(([, value]) => value!);

describe('the guides', () => {
  it('link only each other, their pictures and pages of the service, with anchors that exist', async () => {
    const pages = new Map<string, string>();
    const load = async (path: string) => {
      const response = await fetch(url + path);
      expect(response.status, path).toBe(200);
      pages.set(path, await response.text());
    };
    for (const address of addresses) {
      await load(address);
      const links = new Set(found(pages.get(address)!, /(?:href|src)="([^"]*)"/g));
      expect(links.size).toBeGreaterThan(addresses.length);
      const others = [...links].filter((link) => !/^(https:\/\/|#|\/$|\/docs|\/pages\/|\/openapi\.json)/.test(link));
      expect(others, address).toEqual([]);
      for (const link of links) {
        if (/^https:/.test(link)) continue;
        const { pathname, hash } = new URL(link, url + address);
        if (!pages.has(pathname)) await load(pathname);
        if (hash) expect(pages.get(pathname), link).toContain(`id="${decodeURIComponent(hash.slice(1))}"`);
      }
    }
  });

  it('are all in the sidebar and on the start page, each for a reader', async () => {
    const html = await read('/docs/guides/changelog');
    const [sidebar] = found(html, /<aside(.*?)<\/aside>/gs);

    const linked = found(sidebar!, /href="(\/[^"]+)"/g);
    expect(linked[0]).toBe('/docs/guides');
    expect(linked.toSorted()).toEqual(addresses.toSorted());
    expect(sidebar).toContain('<a href="/docs/guides/changelog" aria-current="page">Changelog</a>');

    const [main] = found(await read('/docs/guides'), /<main(.*?)<\/main>/gs);
    expect(found(main!, /<h2>(.*?)<\/h2>/g)).toEqual(['Call the API', 'Use the board', 'Run it', 'Develop it']);
    expect(found(main!, /<li><a href="([^"]+)"/g).toSorted()).toEqual(addresses.slice(2).toSorted());
  });

  it('can be searched: by headings first, then by text', async () => {
    const response = await fetch(`${url}/docs/guides/search.json`);
    const index = await response.json();
    const hrefs = (...words: string[]) => findSections(index, words).map(({ href }) => href);

    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(hrefs('repeat', 'safely')[0]).toBe('/docs/guides/rest#repeat-a-call-safely');
    expect(hrefs('stop_pause_seconds')).toContain('/docs/guides/settings#settings');
    expect(hrefs('nowhere-to-be-found')).toEqual([]);
  });

  it('have examples with the address of this service', async () => {
    const { url: other, app } = await givenService({ PUBLIC_URL: 'https://api.example.com/' });
    const behindProxy = await (await fetch(`${other}/docs/guides/rest`)).text();
    await app.close();

    expect(await read('/docs/guides/rest')).toContain(`URL=${url}/api\n`);
    expect(behindProxy).toContain('URL=https://api.example.com/api\n');
    for (const address of addresses) {
      const examples = (await read(address)).replaceAll('proxy_pass http://127.0.0.1:3000', '');
      expect(examples, address).not.toContain('http://127.0.0.1:3000');
    }
  });

  it('can be cached', async () => {
    const first = await fetch(`${url}/docs/guides/rest`);
    const again = await fetch(`${url}/docs/guides/rest`, { headers: { 'if-none-match': first.headers.get('etag')! } });

    expect(first.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(again.status).toBe(304);
  });

  it('are part of the container', () => {
    const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');

    expect(dockerfile).toMatch(/^COPY docs docs$/m);
    expect(dockerfile).toMatch(/^COPY README\.md /m);
  });
});

describe('Markdown', () => {
  const render = (source: string) => renderMarkdown(source, (href) => `to:${href}`);

  it('gets the anchors of GitHub', () => {
    const { headings, title } = render(
      "# A `b`\n\n## What's new, in *0.1*?\n\n## Twice\n\n## Twice\n\n### Über – uns\n",
    );

    expect(title).toBe('A b');
    expect(headings.map(({ id }) => id)).toEqual(['whats-new-in-01', 'twice', 'twice-1']);
    expect(render('### Über – uns\n').html).toBe('<h3 id="über--uns">Über – uns</h3>\n');
  });

  it('shows raw HTML as text, in blocks, lines and links', () => {
    const { html } = render('<script>x</script>\n\nA <b onclick="x">b</b> [c](<"><img>)\n');

    expect(html).not.toMatch(/<(script|b|img)/);
    expect(html).toContain('href="to:&#34;');
  });

  it('is cut into sections of plain text, for the search', () => {
    const { html, lead } = render('# A\n\nOne `<b>`, at http://x:1. Two.\n\n## B &\n\n```sh\nls "*"\n```\n');

    expect(lead).toBe('One <b>, at http://x:1.');
    expect(sectionsOf(html)).toEqual([
      { id: 'a', heading: 'A', text: 'One <b>, at http://x:1. Two.' },
      { id: 'b-', heading: 'B &', text: 'sh ls "*"' },
    ]);
    expect(snippetOf(`${'a '.repeat(40)}Word, then ${'b '.repeat(60)}`, ['none', 'word'])).toEqual([
      `…${'a '.repeat(20)}`,
      'Word',
      expect.stringMatching(/^, then (b ?)+…$/),
    ]);
    expect(snippetOf('Text', ['none'])).toEqual(['Text']);
  });

  it('has wide tables that scroll by themselves', () => {
    expect(render('| a |\n| - |\n| b |\n').html).toMatch(/^<div class="wide".*<table>/s);
  });
});
