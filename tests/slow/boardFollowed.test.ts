import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hasBrowser } from '../harness/browser.ts';
import * as board from '../harness/startPage.ts';

const { addCard, cardsIn, inputOf, openBoard, signIn, untilTold } = board;

describe.skipIf(!hasBrowser)('a board that others change', () => {
  const givenStart = board.startPageForSuite();

  /** Two members look at the same board. */
  const givenTwo = async ({ prepare = async (_: Page) => {} } = {}) => {
    const { page: one, problems } = await givenStart();
    const other = await one.context().browser()!.newPage();
    onTestFinished(() => other.close());
    await prepare(other);
    await other.goto(one.url());
    for (const page of [one, other]) {
      await signIn(page, 'Member');
      await openBoard(page, 'Launch plan');
    }
    return { one, other, problems };
  };
  const cardIn = (page: Page, group: string, title: string) =>
    page.getByRole('list', { name: group }).locator('.card', { hasText: title });
  const readsOf = (page: Page) => page.locator('#calls').getByText('boards.get').count();

  it('shows a card that was added, moved and deleted in another tab, and keeps its own focus', async () => {
    const { one, other, problems } = await givenTwo();
    await cardIn(one, 'To do', '').first().focus();
    const focused = await one.evaluate<string>('document.activeElement.id');

    await addCard(other, 'To do', 'From afar');
    await cardIn(one, 'To do', 'From afar').waitFor();
    await cardIn(other, 'To do', 'From afar').press('Alt+ArrowRight');
    await cardIn(one, 'In progress', 'From afar').waitFor();
    expect(await cardsIn(one, 'To do')).not.toContain('From afar');
    other.once('dialog', (dialog) => dialog.accept());
    await other.getByRole('button', { name: 'Delete From afar' }).press('Enter');
    await cardIn(one, 'In progress', 'From afar').waitFor({ state: 'detached' });

    expect(await one.evaluate<string>('document.activeElement.id')).toBe(focused);
    expect(problems).toEqual([]);
  });

  it('reads the board once after an own change', async () => {
    const { one, other } = await givenTwo();
    const before = await readsOf(one);

    await addCard(one, 'Done', 'My own');
    await cardIn(other, 'Done', 'My own').waitFor();
    expect(await readsOf(one)).toBe(before + 1);
    await addCard(other, 'Done', 'Not mine');
    await cardIn(one, 'Done', 'Not mine').waitFor();

    expect(await readsOf(one)).toBe(before + 2);
  });

  it('shows what somebody else changed with the request id of an own change', async () => {
    const { one } = await givenTwo();
    const sent = one.waitForRequest((request) => request.url().includes('cards.create'));
    await addCard(one, 'Done', 'My own id');
    const id = (await (await sent).headerValue('x-request-id'))!;
    const post = async (path: string, input: object, headers: Record<string, string> = {}) =>
      (await one.request.post(new URL(path, one.url()).href, { data: input, headers })).json();
    const { data } = await post('/api/v1/authenticate', { email: 'owner@demo.test', password: 'demo-password' });
    const headers = { authorization: `Bearer ${data.token}`, 'x-request-id': id };
    const { data: list } = await post('/api/services/operations/v1/operations/cards/list', { limit: 200 }, headers);
    const { group_id } = list.cards.find(({ title }: { title: string }) => title === 'My own id');

    await post('/api/services/operations/v1/operations/cards/create', { title: 'With this id', group_id }, headers);

    await cardIn(one, 'Done', 'With this id').waitFor();
  });

  it('waits for the end of a drag', async () => {
    const { one, other } = await givenTwo();
    await addCard(one, 'To do', 'Held');
    await cardIn(one, 'To do', 'Held').hover();
    await one.mouse.down();
    await one.getByRole('list', { name: 'Done' }).hover();

    const event = one.waitForEvent('request', (request) => request.url().includes('boards.get'));
    await addCard(other, 'To do', 'During the drag');
    expect(await cardsIn(one, 'To do')).not.toContain('During the drag');
    expect(await cardsIn(one, 'Done')).toContain('Held');
    await one.mouse.up();

    await event;
    await cardIn(one, 'To do', 'During the drag').waitFor();
    await untilTold(one, 'Moved “Held”.');
    await cardIn(other, 'Done', 'Held').waitFor();
  });

  it('a tab that was hidden catches up when it is visible again', async () => {
    const { one, other } = await givenTwo();
    const show = (isShown: boolean) =>
      one.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${!isShown}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`,
      );
    const ended = one.waitForEvent('requestfailed', (request) => request.url().includes('events.follow'));
    await show(false);
    await ended;

    await addCard(other, 'Done', 'Unseen');
    expect(await cardsIn(one, 'Done')).not.toContain('Unseen');
    await show(true);
    await cardIn(one, 'Done', 'Unseen').waitFor();
    await addCard(other, 'Done', 'Seen');

    await cardIn(one, 'Done', 'Seen').waitFor();
  });

  it('works without a stream', async () => {
    const refused: Promise<unknown>[] = [];
    const { one, other } = await givenTwo({
      prepare: async (page) => {
        await page.route('**/trpc/events.follow*', (route) => route.abort());
        refused.push(page.waitForEvent('requestfailed', (request) => request.url().includes('events.follow')));
      },
    });
    await Promise.all(refused);

    await addCard(other, 'Done', 'Without a stream');

    await cardIn(one, 'Done', 'Without a stream').waitFor();
    expect(await inputOf(other, 'Done').inputValue()).toBe('');
    expect(await other.locator('#message').innerText()).toBe('Added “Without a stream”.');
  });
});
