import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasBrowser, isWiderThanScreen, pageForSuite } from '../harness/browser.ts';
import { givenDemoService } from '../harness/demo.ts';
import { document } from '../harness/document.ts';
import { testService } from '../harness/service.ts';
import { givenWorld, PASSWORD } from '../harness/world.ts';

const DESKTOP = { width: 1400, height: 900 };

describe('the files of the API page', () => {
  it('have less than 500 kB together, compressed, with the document', async () => {
    const { url } = await testService();
    const files = readdirSync(join(import.meta.dirname, '../../server/web/pages'), {
      recursive: true,
      encoding: 'utf8',
    });
    const scripts = files.filter((file) => /\.(js|css|svg)$/.test(file)).map((file) => `/pages/${file}`);
    let total = 0;

    for (const path of ['/docs', '/openapi.json', ...scripts]) {
      const { headers, bytes } = await getCompressed(url + path);
      expect(headers, path).toMatchObject({
        'content-encoding': 'gzip',
        vary: 'Accept-Encoding',
        'cache-control': 'no-cache',
        etag: expect.stringMatching(/^W\/"/),
      });
      total += bytes;
    }

    expect(total).toBeLessThan(500_000);
  });

  it('304 if the browser has them, also if a cache changed the ETag to a strong one', async () => {
    const { url } = await testService();
    const etag = (await fetch(`${url}/pages/api/main.js`)).headers.get('etag')!;

    for (const known of [etag, etag.slice('W/'.length), `"other", ${etag}`]) {
      const again = await fetch(`${url}/pages/api/main.js`, { headers: { 'if-none-match': known } });
      expect([again.status, await again.text()]).toEqual([304, '']);
    }
    expect((await fetch(`${url}/pages/api/main.js`, { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
  });
});

describe.skipIf(!hasBrowser)('the API page', () => {
  const openPage = pageForSuite();
  let demo: Awaited<ReturnType<typeof givenDemoService>>;
  beforeAll(async () => {
    demo = await givenDemoService();
  });
  afterAll(() => demo.close());

  /** The page of a new visitor, at an operation. */
  const givenOperation = async (url: string, operationId = '') => {
    const opened = await openPage(url);
    const { page } = opened;
    await page.setViewportSize(DESKTOP);
    await page.goto(`${url}/docs`);
    await page.evaluate('sessionStorage.clear()');
    await page.goto('about:blank');
    await page.goto(`${url}/docs#/${operationId}`);
    await page.locator(operationId ? '.operation' : '.introduction').waitFor();
    return opened;
  };
  const openDialog = (page: Page) => page.locator('#session').getByRole('button', { name: 'Sign in' }).click();
  const statusOf = (page: Page) => page.locator('.response strong').innerText();

  it('lists every operation in the groups and areas of the document', async () => {
    const { page, problems } = await givenOperation(demo.url);

    expect(await page.locator('#operations h2').allInnerTexts()).toEqual(['Specified', 'Beyond the specification']);
    expect(await page.locator('#operations summary').allInnerTexts()).toEqual(document.tags.map(({ name }) => name));
    expect(await page.locator('#operations a').count()).toBe(Object.keys(document.paths).length);
    expect(problems).toEqual([]);
  });

  it('signs in a demo user with one click, and uses it for every call', async () => {
    const { page, problems } = await givenOperation(demo.url, 'cardsCreate');

    await openDialog(page);
    await page.getByRole('button', { name: 'Member', exact: true }).click();
    await page.getByText('member@demo.test', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send' }).click();

    expect(await statusOf(page)).toBe('201');
    expect(await page.locator('.response').innerText()).toContain('"message": "Card created."');
    await page.locator('#operations').getByRole('link', { name: 'List boards' }).click();
    await page.getByRole('heading', { name: 'List boards' }).waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    expect(await statusOf(page)).toBe('200');
    await page.getByText('Headers', { exact: true }).last().click();
    expect(await page.locator('.response').innerText()).toContain('x-ratelimit-remaining');
    expect(problems).toEqual([]);
  });

  it('asks for the second factor of an account that has one', async () => {
    const { page } = await givenOperation(demo.url, 'accountWhoAmI');

    await openDialog(page);
    await page.getByLabel('E-mail address').fill('otp@demo.test');
    await page.getByLabel('Password').fill('demo-password');
    await page.locator('dialog').getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('Code of the second factor').fill('demo-recovery-2');
    await page.getByLabel('It is a recovery code').check();
    await page.locator('dialog').getByRole('button', { name: 'Sign in' }).click();

    await page.getByText('otp@demo.test', { exact: true }).waitFor();
    await page.locator('#session').getByRole('button', { name: 'Sign out' }).click();
    await page.locator('#session').getByRole('button', { name: 'Sign in' }).waitFor();
  });

  it('shows no demo users without demo data, and says why a sign-in failed', async () => {
    const { url } = await testService();
    const { users } = await givenWorld();
    const { page } = await givenOperation(url, 'boardsList');

    await openDialog(page);
    await page.getByLabel('E-mail address').fill(users.member.email);
    await page.getByLabel('Password').fill('wrong');
    await page.getByLabel('Password').press('Enter');
    await page.getByRole('alert').getByText('password').waitFor();
    expect(await page.locator('dialog').innerText()).not.toContain('demo');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByLabel('Password').press('Enter');
    await page.getByText(users.member.email, { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send' }).click();

    expect(await statusOf(page)).toBe('200');
    expect(await (await fetch(`${url}/pages/demo-users.json`)).json()).toEqual([]);
  });

  it('sends a pasted token, and shows refusals and broken JSON', async () => {
    const { url } = await testService();
    const { asMember } = await givenWorld();
    const { page } = await givenOperation(url, 'tagsCreate');

    await page.getByRole('button', { name: 'Send' }).click();
    expect(await statusOf(page)).toBe('401');
    await page.getByRole('button', { name: 'Sign in first' }).click();
    await page.getByText('Use a token or API key').click();
    await page.getByLabel('Token or API key').fill(asMember.token!);
    await page.getByRole('button', { name: 'Use it' }).click();
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.response').getByText('201').waitFor();
    await page.getByLabel('Body (JSON)').fill('{"name": ""');
    await page.getByLabel('Body (JSON)').press('Control+Enter');

    await page.locator('.response').getByText('The body is not JSON').waitFor();
    expect(await page.locator('.sample').last().innerText()).toContain('not valid JSON');
  });

  it('shows the request of the form as code', async () => {
    const { page } = await givenOperation(demo.url, 'tagsCreate');

    await page.getByLabel('Body (JSON)').fill('{"name": "Press"}');
    await page.getByText('Optional parameters').last().click();
    await page.getByLabel('X-Project-Id').fill('2');
    await page.getByRole('radio', { name: 'TypeScript' }).check();

    const code = await page.locator('.sample').last().innerText();
    expect(code).toContain('projectId: 2');
    expect(code).toContain("client.tags.create.mutate({\n  name: 'Press',\n})");
  });

  it('can be searched and used with the keyboard alone', async () => {
    const { page } = await givenOperation(demo.url);
    const focused = () => page.evaluate('document.activeElement.id || document.activeElement.textContent');

    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('content');
    await page.keyboard.press('/');
    expect(await focused()).toBe('search');
    await page.keyboard.type('snooze card');
    expect(await page.locator('#operations a:visible').allInnerTexts()).toEqual(['Snooze a card']);
    expect(await page.locator('#found').innerText()).toBe('1 found');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe('Snooze a card');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Snooze a card' }).waitFor();
    expect(await focused()).toBe('content');
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    expect(await page.locator('#operations summary:visible').count()).toBe(document.tags.length);
  });

  it('fits a phone, with the list behind a button', async () => {
    const { page } = await givenOperation(demo.url, 'cardsCreate');
    await page.setViewportSize({ width: 360, height: 740 });

    expect(await isWiderThanScreen(page)).toBe(false);
    expect(await page.locator('#sidebar').isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.locator('#search').fill('list tags');
    await page.locator('#operations').getByRole('link', { name: 'List tags' }).click();

    await page.getByRole('heading', { name: 'List tags' }).waitFor();
    expect(await page.locator('#sidebar').isVisible()).toBe(false);
  });

  it('is dark if the system is', async () => {
    const { page } = await givenOperation(demo.url);
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');

    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await background();
    await page.emulateMedia({ colorScheme: null });

    expect([light, dark]).toEqual(['rgb(247, 249, 250)', 'rgb(15, 23, 29)']);
  });

  it('has a name for every field and button', async () => {
    const { page } = await givenOperation(demo.url, 'boardsList');
    await openDialog(page);

    const nameless = await page.evaluate(`[...document.querySelectorAll('input, textarea, button')]
      .filter((one) => !(one.labels?.[0] ?? one).textContent.trim() && !one.ariaLabel)
      .map((one) => one.outerHTML)`);

    expect(nameless).toEqual([]);
  });
});

/** Unlike `fetch`, tells the size of what was sent. */
function getCompressed(url: string) {
  return new Promise<{ headers: object; bytes: number }>((resolve, reject) => {
    request(url, { headers: { 'accept-encoding': 'gzip' } }, async (response) => {
      resolve({ headers: response.headers, bytes: Buffer.concat(await response.toArray()).length });
    })
      .on('error', reject)
      .end();
  });
}
