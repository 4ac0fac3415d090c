import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { isWiderThanScreen } from './browser.ts';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds on a page: the rules of WCAG 2.2 A and AA, and its best practices. */
export const axeFindings = (page: Page) => runAxe(page, 'document', "rules: { 'target-size': { enabled: true } }");

/** What axe finds in these looks, and where a page is wider than the screen. */
export async function findingsIn(page: Page, looks: readonly Look[] = LOOKS): Promise<string[]> {
  const found: string[] = [];
  for (const [at, look] of looks.entries()) {
    await showIn(page, look);
    const isFirstOfWidth = looks.findIndex(({ width }) => width === look.width) === at;
    // With other colours alone, other rules find the same.
    found.push(
      ...(await (isFirstOfWidth ? axeFindings(page) : runAxe(page, ONE_OF_EACH, "runOnly: ['color-contrast']"))),
    );
    if (await isWiderThanScreen(page)) found.push(`wider than ${look.width} pixels`);
  }
  await page.emulateMedia({ colorScheme: null });
  return found;
}

async function runAxe(page: Page, context: string, options: string): Promise<string[]> {
  // Scripts of the test are not held by the page's policy.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(source);
  return page.evaluate<string[]>(`axe
    .run(${context}, { resultTypes: ['violations'], ${options} })
    .then(({ violations }) => violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ': ' + failureSummary)))`);
}

/** A text for each way in which styles can tell texts apart: by elements, classes, and odd and even rows. */
const ONE_OF_EACH = `{ include: [...new Map([...document.querySelectorAll('body *')]
  .filter((one) => [...one.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim()))
  .map((one) => {
    let path = '';
    for (let at = one; at !== document.body; at = at.parentElement)
      path += [at.localName, at.className, at.matches(':nth-child(odd)'), at.ariaCurrent, '/'].join(' ');
    return [path, one];
  })).values()] }`;

/** Light and wide, dark and as narrow as the smallest phones. */
export const LOOKS = [
  { colorScheme: 'light', width: 1400, height: 900 },
  { colorScheme: 'dark', width: 320, height: 740 },
  { colorScheme: 'light', width: 320, height: 740 },
  { colorScheme: 'dark', width: 1400, height: 900 },
] as const;

type Look = (typeof LOOKS)[number];

export async function showIn(page: Page, { colorScheme, ...size }: Look): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(size);
}
