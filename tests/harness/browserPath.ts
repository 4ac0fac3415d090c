import { existsSync } from 'node:fs';

/** The browser for tests of pages, and for pictures of them: `TEST_BROWSER`, or one of this machine. */
export const browserPath = [
  process.env.TEST_BROWSER,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => path !== undefined && existsSync(path));
