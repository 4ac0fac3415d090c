import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** The browser for tests of pages: `TEST_BROWSER`, or one of this machine. */
const executablePath = [
  process.env.TEST_BROWSER,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => path !== undefined && existsSync(path));

export const hasBrowser = executablePath !== undefined;
if (!hasBrowser) console.log('SKIPPED: the pages in a browser. No Chromium was found; TEST_BROWSER can name one.');

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  });
