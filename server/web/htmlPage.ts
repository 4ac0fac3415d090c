import { escapeHtml } from '../security/html.ts';

export { escapeHtml };

export const HTML = 'text/html; charset=utf-8';

type Additions = {
  /** Further files of the page, from `pages/`. */
  styles?: string[];
  scripts?: string[];
  /** Further lines of the head, as HTML. */
  head?: string[];
};

/** A page in the common look. The body is HTML. */
export function htmlPage(
  title: string,
  body: string,
  { styles = [], scripts = [], head = [] }: Additions = {},
): string {
  const links = ['pages.css', ...styles].map((file) => `<link rel="stylesheet" href="/pages/${file}">`);
  const modules = scripts.map((file) => `<script type="module" src="/pages/${file}"></script>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Deckhand</title>
<link rel="icon" type="image/svg+xml" href="/pages/favicon.svg">
${[...links, ...head, ...modules].join('\n')}
</head>
<body>
${body}
</body>
</html>
`;
}
