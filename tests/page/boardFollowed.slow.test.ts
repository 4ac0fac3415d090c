import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { DESKTOP, hasBrowser, pageForSuite } from '../harness/browser.ts';
import * as board from '../harness/page.ts';

const { addCard, cardOf, cardsIn, dragOver, focused, listOf, pressOn, untilMoved } = board;
const { DOING, DONE, TO_DO } = board;

describe.skipIf(!hasBrowser)('a board that others change', () => {
  const { givenBoard, clientOf, open, url } = board.pageOfSuite();
  const openOther = pageForSuite();
  /** Two people look at the same board, in two browsers. */
  const givenTwo = async () => {
    const [given, { page: other }] = await Promise.all([givenBoard(), openOther(url())]);
    await other.setViewportSize(DESKTOP);
    await open(other, given.path, 'Owner');
    return { ...given, one: given.page, other };
  };
  const cardIn = (page: Page, group: string, title: string) => listOf(page, group).getByText(title, { exact: true });

  it('shows what another person adds, moves, renames and deletes, and keeps its own focus', async () => {
    const { one, other, problems } = await givenTwo();
    await cardOf(one, 'Anchor').locator('.title').focus();

    await addCard(other, TO_DO, 'From afar');
    await cardIn(one, TO_DO, 'From afar').waitFor();
    await pressOn(other, 'From afar', 'Alt+ArrowRight');
    await cardIn(one, DOING, 'From afar').waitFor();
    expect(await cardsIn(one, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail']);
    await board.choose(other, 'Actions for From afar', 'Delete');
    await cardOf(one, 'From afar').waitFor({ state: 'detached' });
    await other.locator('.editable', { hasText: DOING }).click();
    await board.send(other, { 'Title of the group': 'Under way' });
    await listOf(one, 'Under way').waitFor();
    await other.getByRole('button', { name: 'New board' }).click();
    await board.send(board.dialog(other, 'New board'), { Title: 'From the shore' });
    await board.tabOf(one, 'From the shore').waitFor();

    expect(await focused(one)).toBe('Anchor');
    expect(problems).toEqual([]);
  });

  it('reads the board once after an own change, and again if somebody else used its request id', async () => {
    const { one, other, groups } = await givenTwo();
    const reads = () => board.callsOf(one, 'boards.get');
    const before = await reads();
    const sent = one.waitForRequest(/cards\.create/);

    await addCard(one, DONE, 'My own');
    await cardIn(other, DONE, 'My own').waitFor();
    expect(await reads()).toBe(before + 1);
    const id = (await sent).headers()['x-request-id']!;
    const withId: typeof fetch = (address, { headers, ...init } = {}) =>
      fetch(address, { ...init, headers: { ...(headers as Record<string, string>), 'x-request-id': id } });
    const api = clientOf('Owner', { fetch: withId });
    await api.cards.create.mutate({ title: 'Not mine', group_id: groups[2]! });
    await cardIn(one, DONE, 'Not mine').waitFor();

    expect(await reads()).toBe(before + 2);
  });

  it('waits for the end of a drag', async () => {
    const { one, other } = await givenTwo();
    await dragOver(one, 'Rope', DONE);

    const read = one.waitForResponse(/boards\.get/);
    await addCard(other, TO_DO, 'During the drag');
    await (await read).finished();
    expect(await cardsIn(one, TO_DO)).toEqual(['Anchor', 'Sail']);
    expect(await cardsIn(one, DONE)).toEqual(['Rope']);
    await one.mouse.up();

    await untilMoved(one, 'Rope', DONE, '1 of 1');
    await cardIn(one, TO_DO, 'During the drag').waitFor();
    await cardIn(other, DONE, 'Rope').waitFor();
  });

  it('a tab that was hidden catches up when it is visible again', async () => {
    const { one, other } = await givenTwo();
    const show = async (isShown: boolean) => {
      await one.evaluate(`Object.defineProperty(document, 'hidden', { value: ${!isShown}, configurable: true })`);
      await one.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    };
    const ended = one.waitForEvent('requestfailed', (request) => request.url().includes('events.follow'));
    await show(false);
    await ended;

    await addCard(other, DONE, 'Unseen');
    expect(await cardsIn(one, DONE)).toEqual([]);
    await show(true);
    await cardIn(one, DONE, 'Unseen').waitFor();
    await addCard(other, DONE, 'Seen');

    await cardIn(one, DONE, 'Seen').waitFor();
  });

  it('works without a stream', async () => {
    const { page } = await givenBoard();
    await page.route('**/trpc/events.follow*', (route) => route.abort());
    const refused = page.waitForEvent('requestfailed', (request) => request.url().includes('events.follow'));
    await page.reload();
    await refused;

    await addCard(page, DONE, 'Without a stream');

    expect(await cardsIn(page, DONE)).toEqual(['Without a stream']);
    expect(await board.inputOf(page, DONE).inputValue()).toBe('');
  });
});
