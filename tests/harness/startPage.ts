import type { Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { holdBack, pageForSuite } from './browser.ts';
import { givenDemoService } from './demo.ts';

const DESKTOP = { width: 1400, height: 900 };

/** The start page of a service with demo data; each test begins as a new visitor. */
export function startPageForSuite() {
  const openPage = pageForSuite();
  let demo: Awaited<ReturnType<typeof givenDemoService>>;
  beforeAll(async () => {
    demo = await givenDemoService();
  });
  afterAll(() => demo.close());

  return async ({ url = demo.url, size = DESKTOP } = {}) => {
    const opened = await openPage(url);
    const { page } = opened;
    await page.setViewportSize(size);
    // A page without scripts, which would use the session of the test before.
    await page.goto(`${url}/health/live`);
    await page.evaluate('sessionStorage.clear()');
    await page.goto(url);
    return opened;
  };
}

export async function signIn(page: Page, name: string) {
  await page.getByRole('button', { name, exact: true }).click();
  await page.locator('.card').first().waitFor();
}

export async function openBoard(page: Page, title: string) {
  await tabOf(page, title).click();
  await tabOf(page, title).and(page.locator('[aria-current=true]')).waitFor();
}

export const tabOf = (page: Page, title: string) => page.locator('.tab', { hasText: title });

export const cardsIn = (page: Page, group: string) =>
  page.getByRole('list', { name: group }).locator('.title').allInnerTexts();

/** Adds a card at the end of a group. */
export async function addCard(page: Page, group: string, title: string) {
  await inputOf(page, group).fill(title);
  await inputOf(page, group).press('Enter');
  await untilTold(page, `Added “${title}”.`);
}

export const inputOf = (page: Page, group: string) => page.getByRole('textbox', { name: `Add a card to ${group}` });

/** Waits until the page says this about a change, or about its failure. */
export const untilTold = (page: Page, text: string) =>
  page.locator('#message').getByText(text, { exact: true }).waitFor();

/** Holds back the first call of a procedure, as `cards.move`. */
export const holdBackCall = (page: Page, procedure: string) => holdBack(page, `**/trpc/*${procedure}*`);
