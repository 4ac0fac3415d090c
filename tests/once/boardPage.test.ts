import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAGE_CLIENT, printPageClient } from '../../client/package/pageClient.ts';
import { hasBrowser, isWiderThanScreen, pageForSuite } from '../harness/browser.ts';
import { givenDemoService } from '../harness/demo.ts';
import { testService } from '../harness/service.ts';

const DESKTOP = { width: 1400, height: 900 };

it('the client of the pages is that of client/client.ts (npm run page-client makes it anew)', async () => {
  expect(await readFile(PAGE_CLIENT, 'utf8')).toBe(await printPageClient());
}, 60_000);

describe.skipIf(!hasBrowser)('the start page', () => {
  const openPage = pageForSuite();
  let demo: Awaited<ReturnType<typeof givenDemoService>>;
  beforeAll(async () => {
    demo = await givenDemoService();
  });
  afterAll(() => demo.close());

  /** The page of a new visitor. */
  const givenStart = async ({ url = demo.url, size = DESKTOP } = {}) => {
    const opened = await openPage(url);
    const { page } = opened;
    await page.setViewportSize(size);
    // A page without scripts, which would use the session of the test before.
    await page.goto(`${url}/health/live`);
    await page.evaluate('sessionStorage.clear()');
    await page.goto(url);
    return opened;
  };
  const signIn = async (page: Page, name: string) => {
    await page.getByRole('button', { name, exact: true }).click();
    await page.locator('.card').first().waitFor();
  };
  const openBoard = async (page: Page, title: string) => {
    await page.getByRole('button', { name: title }).click();
    await page.getByRole('button', { name: title }).and(page.locator('[aria-current=true]')).waitFor();
  };
  const cardsIn = (page: Page, group: string) =>
    page.getByRole('list', { name: group }).locator('.title').allInnerTexts();
  const told = (page: Page) => page.locator('#told').innerText();

  it('shows a board after one click, and the calls that it made', async () => {
    const { page, problems } = await givenStart();

    await signIn(page, 'Member');

    expect(await page.locator('.group h3').allInnerTexts()).toEqual(['Get started', 'Go further']);
    const calls = await page.locator('#calls pre').allInnerTexts();
    expect(calls).toContain('await client.account.whoAmI.query();');
    expect(calls).toContain('await client.as({ projectId: 1 }).boards.list.query();');
    expect(await page.locator('#calls').getByRole('button', { name: 'Copy' }).count()).toBe(calls.length);
    expect(problems).toEqual([]);
  });

  it('adds a card, and moves it with the mouse and with the keyboard', async () => {
    const { page, problems } = await givenStart();
    await signIn(page, 'Member');
    await openBoard(page, 'Launch plan');
    const [from, to] = (await page.locator('.group h3').allInnerTexts()) as [string, string];

    await page.getByRole('textbox', { name: `Add a card to ${from}` }).fill('Dragged');
    await page.keyboard.press('Enter');
    await page.locator('#told').getByText('Added “Dragged”.').waitFor();
    expect((await cardsIn(page, from)).at(-1)).toBe('Dragged');

    await page
      .locator('.card', { hasText: 'Dragged' })
      .dragTo(page.getByRole('list', { name: to }).locator('.card').first(), {
        targetPosition: { x: 60, y: 4 },
      });
    await page.locator('#told').getByText('Moved “Dragged”.').waitFor();
    expect((await cardsIn(page, to))[0]).toBe('Dragged');

    await page.locator('.card', { hasText: 'Dragged' }).focus();
    await page.keyboard.press('Alt+ArrowDown');
    await page.locator('#calls').getByText('position: 2').waitFor();
    expect((await cardsIn(page, to))[1]).toBe('Dragged');
    await page.reload();
    await page.locator('.card').first().waitFor();
    await openBoard(page, 'Launch plan');
    expect((await cardsIn(page, to))[1]).toBe('Dragged');
    expect(problems).toEqual([]);
  });

  it('leaves a card where it is if Escape ends the drag', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Member');
    const before = await cardsIn(page, 'Get started');

    await page.locator('.card').first().hover();
    await page.mouse.down();
    await page.locator('.card').last().hover();
    await page.keyboard.press('Escape');
    await page.mouse.up();

    expect(await cardsIn(page, 'Get started')).toEqual(before);
    expect(await page.locator('#calls').getByText('cards.move').count()).toBe(0);
  });

  it('deletes a card only if that is confirmed', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Member');
    await openBoard(page, 'Launch plan');
    await page.getByRole('textbox', { name: 'Add a card to To do' }).fill('Deleted');
    await page.keyboard.press('Enter');
    await page.locator('#told').getByText('Added “Deleted”.').waitFor();

    page.once('dialog', (dialog) => dialog.dismiss());
    await page.getByRole('button', { name: 'Delete Deleted' }).click();
    expect(await page.locator('#calls').getByText('cards.delete').count()).toBe(0);

    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Delete Deleted' }).click();
    await page.locator('#told').getByText('Deleted “Deleted”.').waitFor();
    expect(await cardsIn(page, 'To do')).not.toContain('Deleted');
  });

  it('tells a viewer why a card is not added, and shows the board as it is', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Viewer');
    const before = await cardsIn(page, 'Get started');

    await page.getByRole('textbox', { name: 'Add a card to Get started' }).fill('Refused');
    await page.keyboard.press('Enter');

    await page.locator('#calls .failure').waitFor();
    expect(await told(page)).toBe('This requires the role member; yours in this project is viewer.');
    expect(await page.locator('#calls .failure').innerText()).toMatch(/^403 role_missing, \d+ ms$/);
    await page.locator('#calls').getByText('boards.get').nth(1).waitFor();
    expect(await cardsIn(page, 'Get started')).toEqual(before);
    expect(await told(page)).not.toBe('');
  });

  it('shows a superadmin what a sync would do', async () => {
    const { page, problems } = await givenStart();
    await signIn(page, 'Admin');

    await page.getByRole('button', { name: 'Preview a sync' }).first().click();

    const row = page.getByRole('row', { name: /Harbor Website/ });
    await row.waitFor();
    expect(await page.getByRole('columnheader').allInnerTexts()).toEqual([
      'Project',
      'Outcome',
      'Boards',
      'Groups',
      'Cards',
    ]);
    expect(problems).toEqual([]);
  });

  it('shows nothing of the board after signing out', async () => {
    const { page, problems } = await givenStart();
    await signIn(page, 'Member');

    await page.getByRole('button', { name: 'Sign out' }).click();

    await page.getByRole('button', { name: 'Member', exact: true }).waitFor();
    expect(await page.locator('.card').count()).toBe(0);
    expect(await page.locator('#calls li').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('asks to sign in again if the session has ended', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Member');
    await page.evaluate(`sessionStorage.setItem('deckhand.session', '{"token":"ended","name":"Member"}')`);

    await page.getByRole('button', { name: 'Launch plan' }).click();

    await page.getByRole('button', { name: 'Member', exact: true }).waitFor();
  });

  it('offers nobody where there is no demo data', async () => {
    const { url } = await testService();
    const { page, problems } = await givenStart({ url });

    await page.locator('#session').getByRole('button', { name: 'Sign in' }).waitFor();

    expect(await page.locator('#demo-users').innerText()).toBe('');
    expect(problems).toEqual([]);
  });

  it('is not wider than a phone screen, and its cards can be moved by their handle', async () => {
    const { page, problems } = await givenStart({ size: { width: 390, height: 800 } });
    await signIn(page, 'Member');

    expect(await isWiderThanScreen(page)).toBe(false);
    expect(
      await page
        .locator('.handle')
        .first()
        .evaluate((handle) => getComputedStyle(handle).touchAction),
    ).toBe('none');
    expect(problems).toEqual([]);
  });
});
