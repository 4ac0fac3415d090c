import { htmlPage } from './htmlPage.ts';

/** What browsers get for an unknown path. */
export const NOT_FOUND_PAGE = htmlPage(
  'Page not found',
  `<main class="narrow">
<h1>Page not found</h1>
<p class="lead">There is no page at this address. It may be misspelt, or the page has moved.</p>
<nav class="tiles" aria-label="Where to go">
<a href="/"><strong>Boards</strong><span>The start page</span></a>
<a href="/docs"><strong>API page</strong><span>Every operation, described and ready to try</span></a>
<a href="/docs/guides"><strong>Guides</strong><span>For callers, operators and developers</span></a>
</nav>
</main>`,
);
