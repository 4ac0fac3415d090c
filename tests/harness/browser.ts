import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished, vi } from 'vitest';
import { browserPath } from './browserPath.ts';

export const hasBrowser = browserPath !== undefined;
if (!hasBrowser) console.log('SKIPPED: the pages in a browser. No Chromium was found; TEST_BROWSER can name one.');

let opened: Promise<Browser> | undefined;

/** One browser for all suites of a worker; it ends with its process. */
export function openBrowser(): Promise<Browser> {
  opened ??= chromium.launch({
    executablePath: browserPath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  });
  return opened;
}

/** `problems` are errors, and requests to other hosts. */
export type OpenPage = { page: Page; problems: string[] };

export const PHONE = { width: 390, height: 800 };

const LONGEST_WAIT_MILLISECONDS = 60_000;
export const DESKTOP = { width: 1400, height: 900 };

/** A page with a browser of its own, as for a second person. */
export async function newPage(more: BrowserContextOptions = {}): Promise<Page> {
  const context = await (await openBrowser()).newContext({ viewport: DESKTOP, ...more });
  context.setDefaultTimeout(LONGEST_WAIT_MILLISECONDS);
  onTestFinished(() => context.close());
  return context.newPage();
}

/** One page for all tests of a suite, since opening a window takes seconds; each test begins with an empty one. */
export function pageForSuite(): (url: string) => Promise<OpenPage> {
  let page: Page;
  // Long enough for a busy machine: what is waited for ends each wait at once.
  vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });
  beforeAll(async () => {
    page = await (await openBrowser()).newPage({ viewport: PHONE });
    page.context().setDefaultTimeout(LONGEST_WAIT_MILLISECONDS);
  });
  afterAll(() => page.context().close());

  return async (url) => {
    await page.unrouteAll();
    await page.removeAllListeners().goto('about:blank');
    await page.setViewportSize(PHONE);
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text());
    });
    page.on('request', (request) => {
      const address = request.url();
      if (!address.startsWith(url) && !address.startsWith('data:')) problems.push(`asked for ${address}`);
    });
    return { page, problems };
  };
}

export const isWiderThanScreen = (page: Page) =>
  page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth');

/** Holds back the first request to an address until it is released; later ones pass, and are counted. */
export async function holdBack(page: Page, address: string) {
  const [first, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let count = 0;
  await page.route(address, async (route) => {
    count += 1;
    first.resolve();
    if (count === 1) await released.promise;
    await route.continue();
  });
  return { first: first.promise, count: () => count, release: released.resolve };
}
