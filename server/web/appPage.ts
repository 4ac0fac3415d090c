import { BUILT_ADDRESS, type PageBuild } from './built.ts';
import { htmlPage } from './htmlPage.ts';

/** The page that the app draws itself into. `load.js` starts it, and reloads the page if a file of it is gone. */
export function appPage(build: PageBuild | undefined): string {
  if (!build) return htmlPage('Boards', `<main><h1>Deckhand</h1>${NOT_BUILT}${LINKS}</main>`);
  const at = (file: string) => `${BUILT_ADDRESS}/${file}`;
  return htmlPage(
    'Boards',
    `<div id="app"></div>\n<noscript><main><h1>Deckhand</h1>${NO_SCRIPT}${LINKS}</main></noscript>`,
    {
      head: [
        ...build.styles.map((file) => `<link rel="stylesheet" href="${at(file)}">`),
        ...[build.script, ...build.preloaded].map((file) => `<link rel="modulepreload" href="${at(file)}">`),
        `<meta name="deckhand-app" content="${at(build.script)}">`,
      ],
      scripts: ['load.js'],
    },
  );
}

const NOT_BUILT =
  '<p>The board of this service was not built. In a checkout, <code>npm ci</code> builds it; without development dependencies, it is left out.</p>';
const NO_SCRIPT = '<p>The board needs JavaScript. The guides and the OpenAPI document do not.</p>';
const LINKS =
  '<p><a href="/docs">API</a> · <a href="/docs/guides">Guides</a> · <a href="/openapi.json">OpenAPI document</a></p>';
