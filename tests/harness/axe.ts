import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds on a page: the rules of WCAG 2.2 A and AA, and its best practices. */
export async function axeFindings(page: Page): Promise<string[]> {
  // Scripts of the test are not held by the page's policy.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(source);
  return page.evaluate<string[]>(`axe
    .run(document, { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } })
    .then(({ violations }) => violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ': ' + failureSummary)))`);
}

/** Light and wide, dark and as narrow as the smallest phones. */
export const LOOKS = [
  { colorScheme: 'light', width: 1400, height: 900 },
  { colorScheme: 'dark', width: 320, height: 740 },
  { colorScheme: 'light', width: 320, height: 740 },
  { colorScheme: 'dark', width: 1400, height: 900 },
] as const;

export async function showIn(page: Page, { colorScheme, ...size }: (typeof LOOKS)[number]): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(size);
}
