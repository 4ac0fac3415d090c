import { Marked, type Token, type Tokens } from 'marked';
import { escapeHtml } from './htmlPage.ts';

export type Rendered = { title: string; html: string; headings: { id: string; text: string }[] };

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
      html: ({ text }) => escapeHtml(text),
    },
  });
  // Wide tables scroll by themselves, so that the page stays as narrow as a phone.
  const html = (marked.parse(source) as string).replace(
    /<table>.*?<\/table>/gs,
    '<div class="wide" tabindex="0" role="region" aria-label="Table">$&</div>',
  );
  return { title, html, headings };
}

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
