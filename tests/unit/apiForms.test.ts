import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hasBrowser, holdBack, pageForSuite } from '../harness/browser.ts';
import { testService } from '../harness/service.ts';
import { givenWorld, PASSWORD } from '../harness/world.ts';

describe.skipIf(!hasBrowser)('the forms of the API page', () => {
  const openPage = pageForSuite();

  /** A member at an operation. */
  const givenOperation = async (operationId: string) => {
    const { url } = await testService();
    const { asMember } = await givenWorld();
    const { page } = await openPage(url);
    await page.goto(`${url}/health/live`);
    await page.evaluate((session) => sessionStorage.setItem('deckhand.session', session), sessionOf(asMember.token!));
    await page.goto(`${url}/docs#/${operationId}`);
    await page.locator('.operation').waitFor();
    return page;
  };
  const sessionOf = (token: string) => JSON.stringify({ token, name: 'Member', isSignedIn: false });
  const body = (page: Page) => page.getByLabel('Body (JSON)');
  const openOperation = async (page: Page, operationId: string, heading: string) => {
    await page.goto(`${page.url().split('#')[0]}#/${operationId}`);
    await page.getByRole('heading', { name: heading, exact: true }).waitFor();
  };

  it('send once, however often Send is pressed before the answer', async () => {
    const page = await givenOperation('tagsCreate');
    const create = await holdBack(page, '**/tags/create');

    await page.getByRole('button', { name: 'Send' }).dblclick();
    await body(page).press('Control+Enter');
    await create.first;
    create.release();
    await page.locator('.response').getByText('201').waitFor();

    expect(create.count()).toBe(1);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('form:not([aria-busy])').waitFor();
    expect(create.count()).toBe(2);
  });

  it('say that no answer came, and can be sent again', async () => {
    const page = await givenOperation('tagsCreate');
    await page.route('**/tags/create', (route) => route.abort());

    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.response .failure').getByText("Can't reach Deckhand.", { exact: true }).waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Send' }).click();

    await page.locator('.response').getByText('201').waitFor();
  });

  it('keep what was written while other operations are open, until the user signs out', async () => {
    const page = await givenOperation('tagsCreate');
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

  it('sign in once, however often Enter is pressed, and say that no answer came', async () => {
    const page = await givenOperation('tagsCreate');
    const { users } = await givenWorld();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.locator('#session').getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('E-mail address').fill(users.member.email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.route('**/v1/authenticate', (route) => route.abort());

    await page.getByLabel('Password').press('Enter');
    await page.getByRole('alert').getByText("Can't reach Deckhand.", { exact: true }).waitFor();
    expect(await page.getByLabel('Password').inputValue()).toBe(PASSWORD);
    await page.unrouteAll();
    const authenticate = await holdBack(page, '**/v1/authenticate');
    for (let press = 0; press < 3; press++) await page.getByLabel('Password').press('Enter');
    await authenticate.first;
    authenticate.release();

    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(authenticate.count()).toBe(1);
  });

  it('are missing with a reason if the document can not be loaded', async () => {
    const page = await givenOperation('tagsCreate');
    await page.route('**/openapi.json', (route) => route.abort());

    await page.reload();

    await page.locator('#content .failure').getByText("Can't reach Deckhand.", { exact: true }).waitFor();
  });
});
