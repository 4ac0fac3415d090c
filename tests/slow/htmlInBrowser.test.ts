import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sanitizeHtml } from '../../server/security/html.ts';
import { hasBrowser, openBrowser } from '../harness/browser.ts';

/** Pieces that a parser other than the browser's may read in another way. */
const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '<a href="javascript:alert(1)" id=x name=body>',
  '<details open ontoggle=alert(1)>',
  '<p style="text-align:center;background:url(//evil.test)" class=x>',
  `<p id='"><img src=x onerror=alert(1)>'>`,
  '<svg>',
  '<math><mtext>',
  '<mglyph>',
  '<style>',
  '</style>',
  '<noscript>',
  '</noscript>',
  '<textarea>',
  '</textarea>',
  '<template>',
  '<table>',
  '<select>',
  '<form>',
  '</form>',
  '<title>',
  '<xmp>',
  '<iframe>',
  '</iframe>',
  '<script>',
  '</script>',
  '<!--',
  '-->',
  '--!>',
  '<![CDATA[',
  ']]>',
  '<a title="</style><img src=x onerror=alert(1)>">',
  '<p class="-->&lt;img src=x onerror=alert(1)&gt;">',
  '&lt;script&gt;',
  '<summary>',
  '</p>',
  '</a>',
  '<',
  '/',
  '"',
  "'",
  '\u0001',
];

/** What a page finds in a text that it inserts: the names of elements and attributes, and the schemes of URLs. */
const FOUND = `(texts) => {
  const found = new Set();
  for (const text of texts) {
    const place = document.createElement('div');
    document.body.replaceChildren(place);
    place.innerHTML = text;
    for (const element of place.querySelectorAll('*')) {
      found.add(element.namespaceURI.endsWith('xhtml') ? element.localName : element.namespaceURI);
      for (const { name, value } of element.attributes) {
        found.add('@' + name + (name === 'style' ? '=' + value : ''));
        if (name === 'href' || name === 'src') found.add(new URL(value, 'https://page.test').protocol);
      }
    }
  }
  return [...found];
}`;

describe.skipIf(!hasBrowser)('sanitised HTML in a browser', () => {
  it('has only allowed elements, attributes and URLs', async () => {
    const pieces = fc.array(fc.constantFrom(...HOSTILE), { minLength: 1, maxLength: 12 });
    const sent = fc.sample(pieces, { numRuns: 2000, seed: Number(process.env.FAST_CHECK_SEED) });
    const texts = await Promise.all(sent.map((parts) => sanitizeHtml(parts.join(''))));

    const browser = await openBrowser();
    const page = await browser.newPage();
    const found = await page.evaluate<string[]>(`(${FOUND})(${JSON.stringify(texts)})`).finally(() => browser.close());

    const allowed = ['a', 'img', 'details', 'p', 'table', 'tbody', 'summary', 'https:'];
    const attributes = ['@src', '@id', '@class', '@title', '@open', '@style=text-align:center'];
    expect(found.filter((name) => ![...allowed, ...attributes].includes(name))).toEqual([]);
    expect(found).toEqual(expect.arrayContaining(['details', 'summary', '@id', '@class', '@style=text-align:center']));
  });
});
