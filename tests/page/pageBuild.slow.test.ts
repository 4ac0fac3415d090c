import { describe, expect, it } from 'vitest';
import { filesBefore } from '../../server/package/pageBuild.ts';
import { BUILT_ADDRESS, readBuild } from '../../server/web/built.ts';
import { hasBrowser, pageForSuite } from '../harness/browser.ts';
import { testService } from '../harness/service.ts';

describe('the files of the page', () => {
  it('are kept for ever by browsers, since another content has another name; the page itself is not', async () => {
    const { url } = await testService();
    const cachingOf = async (path: string) => (await fetch(url + path)).headers.get('cache-control');

    const { script, styles } = readBuild()!;

    for (const file of [script, ...styles])
      expect(await cachingOf(`${BUILT_ADDRESS}/${file}`)).toBe('public, max-age=31536000, immutable');
    for (const path of ['/', '/projects/7', '/pages/client.js', '/pages/load.js'])
      expect(await cachingOf(path)).toBe('no-cache');
  });

  it('of the build before stay until the next change', () => {
    const before = { files: ['main-1.js', 'same-1.js'], before: ['main-0.js'] };

    expect(filesBefore(undefined, ['main-1.js'])).toEqual([]);
    expect(filesBefore(before, ['main-2.js', 'same-1.js'])).toEqual(['main-1.js']);
    expect(filesBefore(before, ['main-1.js', 'same-1.js'])).toEqual(['main-0.js']);
    expect(filesBefore(before, ['main-0.js', 'same-1.js'])).toEqual(['main-1.js']);
  });
});

describe.skipIf(!hasBrowser)('a page whose file is gone', () => {
  const openPage = pageForSuite();
  const gone = { status: 404, body: '' };

  it('is loaded again, once', async () => {
    const { url } = await testService();
    const { page } = await openPage(url);
    const script = `**/${readBuild()!.script}`;
    await page.route(script, (route) => route.fulfill(gone), { times: 1 });

    await page.goto(url);
    await page.getByRole('heading', { level: 1 }).waitFor();

    expect(await page.getByText('could not be loaded').count()).toBe(0);
  });

  it('says so if that does not help', async () => {
    const { url } = await testService();
    const { page } = await openPage(url);
    let asked = 0;
    await page.route(`**/${readBuild()!.script}`, (route) => {
      asked += 1;
      return route.fulfill(gone);
    });
    await page.goto(`${url}/health/live`);
    await page.evaluate('sessionStorage.clear()');

    await page.goto(url);
    await page.getByRole('alert').getByText('could not be loaded').waitFor();

    expect(asked).toBeGreaterThan(1);
    expect(await page.locator('.failure').count()).toBe(1);
  });
});
