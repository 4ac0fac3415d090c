import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operationsOf } from '../../server/api/openapi/document.ts';
import { findProcedure } from '../../server/api/procedures.ts';
import { document } from '../../server/contract/violations.ts';
import { axeFindings, findingsIn } from '../harness/axe.ts';
import { DESKTOP, hasBrowser, holdBack, isWiderThanScreen, pageForSuite } from '../harness/browser.ts';
import { givenDemoService } from '../harness/demo.ts';
import { givenService, testService } from '../harness/service.ts';
import { givenWorld, PASSWORD } from '../harness/world.ts';

const UNREACHABLE = "Can't reach Deckhand.";

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
    await page.evaluate('localStorage.clear()');
    await page.goto('about:blank');
    await page.goto(`${url}/docs#/${operationId}`);
    await page.locator(operationId ? '.operation' : '.introduction').waitFor();
    return opened;
  };
  const openDialog = (page: Page) => page.locator('#session').getByRole('button', { name: 'Sign in' }).click();
  const body = (page: Page) => page.getByLabel('Body (JSON)');
  const send = (page: Page) => page.getByRole('button', { name: 'Send' });
  const password = (page: Page) => page.getByLabel('Password');
  const statusOf = (page: Page) => page.locator('.response strong').innerText();

  it('signs in a demo user with one click, and uses it for every call', async () => {
    const { page, problems } = await givenOperation(demo.url, 'cardsCreate');

    await openDialog(page);
    await page.getByRole('button', { name: 'Member', exact: true }).click();
    await page.getByText('member@demo.test', { exact: true }).waitFor();
    await send(page).click();

    expect(await statusOf(page)).toBe('201');
    expect(await page.locator('.response').innerText()).toContain('"message": "Card created."');
    await page.locator('#listed').getByText('Boards', { exact: true }).click();
    await page.locator('#listed').getByRole('link', { name: 'List boards' }).click();
    await page.getByRole('heading', { name: 'List boards' }).waitFor();
    await send(page).click();
    expect(await statusOf(page)).toBe('200');
    await page.getByText('Headers', { exact: true }).last().click();
    expect(await page.locator('.response').innerText()).toContain('x-ratelimit-remaining');
    expect(problems).toEqual([]);
  });

  it('has one session in all tabs: signed out in one is signed out in the others', async () => {
    const { page } = await givenOperation(demo.url, 'boardsList');
    await openDialog(page);
    await page.getByRole('button', { name: 'Member', exact: true }).click();
    await page.getByText('as member@demo.test').waitFor();

    const opened = page.waitForEvent('popup');
    await page.evaluate("window.open('/docs#/tagsList')");
    const other = await opened;
    await other.getByText('as member@demo.test').waitFor();
    await other.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in first' }).waitFor();
    await other.close();

    expect(await page.locator('#session').innerText()).toBe('Sign in');
  });

  it('marks a deprecated operation, also in the list', async () => {
    const procedure = findProcedure('tags.list')!;
    procedure.deprecated = { since: '2026-11-16', sunset: '2027-06-01', use: 'tags.create' };
    const { url } = await givenService();

    const { page, problems } = await givenOperation(url, 'tagsList');

    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('List tags deprecated');
    expect(await page.locator('.operation').innerText()).toContain(
      'Deprecated since 2026-11-16; works until 2027-06-01.',
    );
    expect(await page.locator('#listed s').allTextContents()).toEqual(['List tags']);
    expect(problems).toEqual([]);
    procedure.deprecated = undefined;
  });

  it('asks for the second factor of an account that has one', async () => {
    const { page } = await givenOperation(demo.url, 'accountWhoAmI');

    await openDialog(page);
    await page.getByLabel('E-mail address').fill('otp@demo.test');
    await password(page).fill('demo-password');
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
    await password(page).fill('wrong');
    await password(page).press('Enter');
    await page.getByRole('alert').getByText('password').waitFor();
    expect(await page.locator('dialog').innerText()).not.toContain('demo');
    await password(page).fill(PASSWORD);
    await password(page).press('Enter');
    await page.getByText(users.member.email, { exact: true }).waitFor();
    await send(page).click();

    expect(await statusOf(page)).toBe('200');
    expect(await (await fetch(`${url}/pages/demo-users.json`)).json()).toEqual([]);
  });

  it('sends a pasted token, and shows refusals and broken JSON', async () => {
    const { url } = await testService();
    const { asMember } = await givenWorld();
    const { page } = await givenOperation(url, 'tagsCreate');

    await send(page).click();
    expect(await statusOf(page)).toBe('401');
    await page.getByRole('button', { name: 'Sign in first' }).click();
    await page.getByText('Use a token or API key').click();
    await page.getByLabel('Token or API key').fill(asMember.token!);
    await page.getByRole('button', { name: 'Use it' }).click();
    await send(page).click();
    await page.locator('.response').getByText('201', { exact: true }).waitFor();
    await body(page).fill('{"name": ""');
    await body(page).press('Control+Enter');

    await page.locator('.response').getByText('The body is not JSON').waitFor();
    expect(await page.locator('.try').innerText()).toContain('The body is not valid JSON.');
  });

  it('shows the request of the form as code', async () => {
    const { page } = await givenOperation(demo.url, 'tagsCreate');

    await body(page).fill('{"name": "Press"}');
    await page.getByText('Optional parameters').last().click();
    await page.getByLabel('X-Project-Id').fill('2');
    await page.getByRole('radio', { name: 'TypeScript' }).check();

    const code = await page.locator('.sample').last().innerText();
    expect(code).toContain('projectId: 2');
    expect(code).toContain("client.tags.create.mutate({\n  name: 'Press',\n})");
  });

  it('lists every operation, and can be searched and used with the keyboard alone', async () => {
    const { page, problems } = await givenOperation(demo.url);
    const focused = () => page.evaluate('document.activeElement.id || document.activeElement.textContent');

    const areas = document.tags.slice(0, 5).map(({ name }) => name);
    expect(await page.locator('#listed h2').allInnerTexts()).toEqual(areas);
    expect(await page.locator('#listed a').count()).toBe(operationsOf(document).length);
    expect(await page.locator('#listed .badge').count()).toBe(22);
    expect(await page.locator('.introduction').innerText()).toContain('Fixed by the specification');

    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('content');
    await page.keyboard.press('/');
    expect(await focused()).toBe('search');
    await page.keyboard.type('snooze card');
    expect(await page.locator('#results a').first().innerText()).toBe('Snooze a card\nCards');
    expect(await page.locator('#found').innerText()).toMatch(/^\d+ found$/);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Snooze a card' }).waitFor();
    expect(await focused()).toBe('content');
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    expect(await page.locator('#listed').isVisible()).toBe(true);
    await page.keyboard.type('code_required');
    expect(await page.locator('#results a').first().innerText()).toBe('Sign in\nSign-in · reason code_required');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    expect(problems).toEqual([]);
  });

  it('says that an address names no operation', async () => {
    const { page } = await givenOperation(demo.url, '');

    await page.goto(`${demo.url}/docs#/cardsArchive`);

    await page.getByText('There is no operation “cardsArchive”.').waitFor();
  });

  it('fits a phone, with the list behind a button', async () => {
    const { page } = await givenOperation(demo.url, 'cardsCreate');
    await page.setViewportSize({ width: 360, height: 740 });

    expect(await isWiderThanScreen(page)).toBe(false);
    expect(await page.locator('#sidebar').isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.locator('#search').fill('list tags');
    await page.locator('#results').getByRole('link', { name: 'List tags' }).click();

    await page.getByRole('heading', { name: 'List tags' }).waitFor();
    expect(await page.locator('#sidebar').isVisible()).toBe(false);
  });

  it('shows samples whole: nothing covers them, and a column that is higher than the window scrolls with the page', async () => {
    const { page } = await givenOperation(demo.url, 'cardsCreate');
    const column = page.locator('.try');
    const positionOf = () => column.evaluate((place) => getComputedStyle(place).position);

    await page.setViewportSize({ width: 1400, height: 2000 });
    await expect.poll(positionOf).toBe('sticky');
    await page.setViewportSize({ width: 1400, height: 500 });
    await expect.poll(positionOf).toBe('static');
    for (const width of [1400, 320]) {
      await page.setViewportSize({ width, height: 700 });
      const [bar, code] = await Promise.all(
        ['.sample-bar', '.sample pre'].map((part) => page.locator(part).last().boundingBox()),
      );
      expect(code!.y).toBeGreaterThanOrEqual(bar!.y + bar!.height);
    }
  });

  it('is clean for axe, in light and dark, wide and narrow', { timeout: 180_000 }, async () => {
    for (const operation of ['', 'cardsCreate', 'boardsGet', 'rolloutsRollback']) {
      const { page } = await givenOperation(demo.url, operation);
      expect(await findingsIn(page), operation).toEqual([]);
    }
    const { page } = await givenOperation(demo.url, 'boardsList');
    await openDialog(page);
    expect(await axeFindings(page)).toEqual([]);
  });

  /** A member at the form of an operation. */
  const givenForm = async () => {
    const { url } = await testService();
    const { asMember } = await givenWorld();
    const { page } = await openPage(url);
    await page.goto(`${url}/health/live`);
    const session = JSON.stringify({ token: asMember.token, name: 'Member', isSignedIn: false });
    await page.evaluate((text) => localStorage.setItem('deckhand.session', text), session);
    await page.goto(`${url}/docs#/tagsCreate`);
    await page.locator('.operation').waitFor();
    return page;
  };
  const openOperation = async (page: Page, operationId: string, heading: string) => {
    await page.goto(`${page.url().split('#')[0]}#/${operationId}`);
    await page.getByRole('heading', { name: heading, exact: true }).waitFor();
  };

  it('sends once, however often Send is pressed, says that no answer came, and can be sent again', async () => {
    const page = await givenForm();
    const create = await holdBack(page, '**/tags/create');

    await send(page).dblclick();
    await body(page).press('Control+Enter');
    await create.first;
    create.release();
    await page.locator('.response').getByText('201', { exact: true }).waitFor();
    expect(create.count()).toBe(1);

    await page.route('**/tags/create', (route) => route.abort());
    await send(page).click();
    await page.locator('.response .failure').getByText(UNREACHABLE, { exact: true }).waitFor();
    await page.unrouteAll();
    await send(page).click();
    await page.locator('.response').getByText('201', { exact: true }).waitFor();

    await page.route('**/openapi.json', (route) => route.abort());
    await page.reload();
    await page.locator('#content .failure').getByText(UNREACHABLE, { exact: true }).waitFor();
  });

  it('asks before it sends a deletion, and sends nothing after Cancel or Escape', async () => {
    const page = await givenForm();
    const tag = await holdBack(page, '**/tags/delete');
    tag.release();
    await openOperation(page, 'tagsDelete', 'Delete a tag');
    const dialog = page.getByRole('dialog', { name: 'Delete a tag?' });

    await send(page).click();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await send(page).click();
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(tag.count()).toBe(0);

    await send(page).click();
    await dialog.getByRole('button', { name: 'Send it' }).click();
    await page.locator('.response strong').waitFor();
    expect(tag.count()).toBe(1);
  });

  it('keeps what was written while other operations are open, until the user signs out', async () => {
    const page = await givenForm();
    const example = await body(page).inputValue();
    await body(page).fill('{"name": "Mine"}');
    await page.getByText('Optional parameters').last().click();
    await page.getByLabel('X-Project-Id').fill('7');

    await openOperation(page, 'cardsCreate', 'Create a card');
    expect(await body(page).inputValue()).not.toContain('Mine');
    await openOperation(page, 'tagsCreate', 'Create a tag');
    expect(await body(page).inputValue()).toBe('{"name": "Mine"}');
    expect(await page.getByLabel('X-Project-Id').isVisible()).toBe(true);
    expect(await page.getByLabel('X-Project-Id').inputValue()).toBe('7');
    expect(await page.locator('.sample').last().innerText()).toContain('Mine');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await openOperation(page, 'cardsCreate', 'Create a card');
    await openOperation(page, 'tagsCreate', 'Create a tag');
    expect(await body(page).inputValue()).toBe(example);
  });

  it('signs in once, however often Enter is pressed, and says that no answer came', async () => {
    const page = await givenForm();
    const { users } = await givenWorld();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await openDialog(page);
    await page.getByLabel('E-mail address').fill(users.member.email);
    await password(page).fill(PASSWORD);
    await page.route('**/v1/authenticate', (route) => route.abort());

    await password(page).press('Enter');
    await page.getByRole('alert').getByText(UNREACHABLE, { exact: true }).waitFor();
    expect(await password(page).inputValue()).toBe(PASSWORD);
    await page.unrouteAll();
    const authenticate = await holdBack(page, '**/v1/authenticate');
    for (let press = 0; press < 3; press++) await password(page).press('Enter');
    await authenticate.first;
    authenticate.release();

    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(authenticate.count()).toBe(1);
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
