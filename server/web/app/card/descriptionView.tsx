import { useLayoutEffect, useRef } from 'preact/hooks';
import { shownElement, withoutStyles } from './allowedHtml.ts';

type Policy = { createHTML: (html: string) => string };
type WithTrustedTypes = { trustedTypes?: { createPolicy: (name: string, rules: Policy) => Policy } };

/** The only policy of the page. What it lets through is parsed into an inert document, never put into the page. */
const policy = (window as WithTrustedTypes).trustedTypes?.createPolicy('deckhand', { createHTML: (html) => html });

/** The HTML of a copy of a template. In a shadow root, so that it can't take on the look of the page. */
export function DescriptionView({ html }: { html: string }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const root = place.current?.shadowRoot ?? place.current?.attachShadow({ mode: 'open' });
    if (!root) return;
    root.adoptedStyleSheets = [stylesheet()];
    const text = withoutStyles(html);
    const { body } = new DOMParser().parseFromString(policy?.createHTML(text) ?? text, 'text/html');
    const shown = document.createElement('div');
    // Text without markup keeps its lines.
    shown.className = body.childElementCount === 0 ? 'plain' : '';
    copy(body, shown);
    root.replaceChildren(shown);
  }, [html]);
  return <div ref={place} dir="auto" />;
}

function copy(from: Node, to: Element): void {
  for (const node of from.childNodes) {
    if (node instanceof Text) to.append(node.data);
    if (!(node instanceof Element)) continue;
    const shown = shownElement(node.localName, (name) => node.getAttribute(name), location.href);
    if (shown === 'contents') copy(node, to);
    if (typeof shown === 'string') continue;
    const made = document.createElement(shown.name);
    for (const [name, value] of Object.entries(shown.attributes)) made.setAttribute(name, value);
    made.style.textAlign = shown.align ?? '';
    made.textContent = shown.text ?? '';
    to.append(made);
    copy(node, made);
  }
}

let sheet: CSSStyleSheet | undefined;
function stylesheet(): CSSStyleSheet {
  if (sheet) return sheet;
  sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    .plain { white-space: pre-line; }
    div { overflow-wrap: anywhere; }
    a { color: var(--accent); }
    em { color: var(--faint); }
    p, ul, ol, h3, h4, h5, h6, table, blockquote, pre { margin: 0.5em 0; font-size: 1em; }
    pre { white-space: pre-wrap; }
    blockquote { padding-left: 0.75em; border-left: 3px solid var(--line); }
    img { max-width: 100%; height: auto; }
    table { border-collapse: collapse; }
    td, th { padding: 0.25em 0.5em; border: 1px solid var(--line); text-align: start; }
  `);
  return sheet;
}
