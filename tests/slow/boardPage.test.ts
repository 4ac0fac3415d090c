import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createClient } from '../../client/client.ts';
import { hasBrowser, isWiderThanScreen, PHONE } from '../harness/browser.ts';
import { testService } from '../harness/service.ts';
import { addCard, cardsIn, inputOf, openBoard, signIn, startPageForSuite, untilTold } from '../harness/startPage.ts';

describe.skipIf(!hasBrowser)('the start page', () => {
  const givenStart = startPageForSuite();

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

    await addCard(page, from, 'Dragged');
    expect((await cardsIn(page, from)).at(-1)).toBe('Dragged');

    await page
      .locator('.card', { hasText: 'Dragged' })
      .dragTo(page.getByRole('list', { name: to }).locator('.card').first(), {
        targetPosition: { x: 60, y: 4 },
      });
    await untilTold(page, 'Moved “Dragged”.');
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

  it('shows cards that are in no group in a last column, from where they can be moved', async () => {
    const { page, problems } = await givenStart();
    await signIn(page, 'Member');
    const title = `Loose ${randomUUID()}`;
    const { origin } = new URL(page.url());
    const member = { email: 'member@demo.test', password: 'demo-password' };
    await createClient({ url: origin, signIn: member }).cards.create.mutate({ title });
    await openBoard(page, 'Launch plan');
    expect((await page.locator('.group h3').allInnerTexts()).at(-1)).toBe('In no group');
    const before = await page.locator('#boards [aria-current=true]').innerText();

    const card = page.locator('.card', { hasText: title });
    await card.focus();
    await page.keyboard.press('Alt+ArrowLeft');
    await untilTold(page, `Moved “${title}”.`);

    expect(await page.getByText('group_id: null').count()).toBe(0);
    expect(await page.locator('#boards [aria-current=true]').innerText()).not.toBe(before);
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
    await addCard(page, 'To do', 'Deleted');

    page.once('dialog', (dialog) => dialog.dismiss());
    await page.getByRole('button', { name: 'Delete Deleted' }).click();
    expect(await page.locator('#calls').getByText('cards.delete').count()).toBe(0);

    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Delete Deleted' }).click();
    await untilTold(page, 'Deleted “Deleted”.');
    expect(await cardsIn(page, 'To do')).not.toContain('Deleted');
  });

  it('tells a viewer why a card is not added, and shows the board as it is', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Viewer');
    const before = await cardsIn(page, 'Get started');

    await inputOf(page, 'Get started').fill('Refused');
    await page.keyboard.press('Enter');

    await untilTold(page, 'You can view this project but not change it.');
    expect(await page.locator('#calls .failure').innerText()).toMatch(/^403 role_missing, \d+ ms$/);
    await page.locator('#calls').getByText('boards.get').nth(1).waitFor();
    expect(await cardsIn(page, 'Get started')).toEqual(before);
    expect(await inputOf(page, 'Get started').inputValue()).toBe('Refused');
    expect(await page.locator('#message').innerText()).toBe('You can view this project but not change it.');
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
    const { page, problems } = await givenStart({ size: PHONE });
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
