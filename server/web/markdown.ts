import { Marked, type Token, type Tokens } from 'marked';
import { escapeHtml } from './htmlPage.ts';

/** `lead` is the first sentence below the title; empty if something else is there. */
export type Rendered = { title: string; lead: string; html: string; headings: { id: string; text: string }[] };

/** Renders our Markdown: headings have the anchors that GitHub gives them, raw HTML is shown as text. */
export function renderMarkdown(source: string, linkTo: (href: string) => string): Rendered {
  const anchors = new Map<string, number>();
  const headings: Rendered['headings'] = [];
  let title = '';

  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const text = plainText(tokens);
        const id = anchorOf(text, anchors);
        if (depth === 1) title = text;
        if (depth === 2) headings.push({ id, text });
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        return `<a href="${escapeHtml(linkTo(href))}">${this.parser.parseInline(tokens)}</a>`;
      },
      image: ({ href, text }) => `<img src="${escapeHtml(linkTo(href))}" alt="${escapeHtml(text)}">`,
      // What scrolls by itself can be reached with the keyboard.
      code: ({ text, lang = '' }) =>
        `<div class="sample"><div class="sample-bar">${escapeHtml(lang)}</div><pre tabindex="0"><code>${escapeHtml(text)}\n</code></pre></div>\n`,
      html: ({ text }) => escapeHtml(text),
    },
  });
  const html = (marked.parse(source) as string)
    // Wide tables scroll by themselves, so that the page stays as narrow as a phone.
    .replace(/<table>.*?<\/table>/gs, '<div class="wide" tabindex="0" role="group" aria-label="Table">$&</div>')
    // A column without a heading.
    .replaceAll('<th></th>', '<td></td>');
  const [, first = ''] = /^<h1.*<\/h1>\n<p>(.*?)<\/p>/s.exec(html) ?? [];
  return { title, lead: FIRST_SENTENCE.exec(textIn(first))?.[0] ?? '', html, headings };
}

/** The text of a page by its headings, for the search. */
export function sectionsOf(html: string): { id: string; heading: string; text: string }[] {
  return [...html.matchAll(/<h\d id="([^"]*)">(.*?)<\/h\d>(.*?)(?=<h\d id=|$)/gs)].map(
    ([, id = '', heading = '', rest = '']) => ({ id, heading: textIn(heading), text: textIn(rest) }),
  );
}

const textIn = (html: string) =>
  html
    .replace(/<[^>]*>/g, (tag) => (/^<\/?(a|code|em|strong)\b/.test(tag) ? '' : ' '))
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replace(/&(lt|gt|quot|amp);/g, (_, name: keyof typeof CHARACTERS) => CHARACTERS[name])
    .replace(/\s+/g, ' ')
    .trim();

/** Without a colon, after which something else follows than text. */
const FIRST_SENTENCE = /^(?:[^:.]|[:.](?!\s|$))*\.(?=\s|$)/;

const CHARACTERS = { lt: '<', gt: '>', quot: '"', amp: '&' };

/** As GitHub does: lower case, punctuation removed, spaces as hyphens; a repeated one gets a number. */
function anchorOf(text: string, used: Map<string, number>): string {
  const anchor = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-');
  const count = used.get(anchor) ?? 0;
  used.set(anchor, count + 1);
  return count === 0 ? anchor : `${anchor}-${count}`;
}

function plainText(tokens: Token[]): string {
  return tokens.map((token) => ('tokens' in token && token.tokens ? plainText(token.tokens) : textOf(token))).join('');
}

const textOf = (token: Token) => (token as Tokens.Text).text ?? '';
