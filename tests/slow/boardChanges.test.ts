import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hasBrowser } from '../harness/browser.ts';
import * as board from '../harness/startPage.ts';

const { addCard, cardsIn, holdBackCall, inputOf, openBoard, signIn, tabOf, untilTold } = board;
const NOT_SAVED = "Can't reach Deckhand. Your change was not saved.";

describe.skipIf(!hasBrowser)('changes on the start page', () => {
  const givenStart = board.startPageForSuite();

  /** A member looks at a board with three groups. */
  const givenBoard = async () => {
    const { page } = await givenStart();
    await signIn(page, 'Member');
    await openBoard(page, 'Launch plan');
    return page;
  };
  const cardOf = (page: Page, title: string) => page.locator('.card', { hasText: title });
  const focused = (page: Page) => page.evaluate<string>('document.activeElement.id');
  const deleteCard = async (page: Page, title: string) => {
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: `Delete ${title}` }).press('Enter');
  };
  const asStored = async (page: Page, group: string) => {
    await page.reload();
    await page.locator('.card').first().waitFor();
    await openBoard(page, 'Launch plan');
    return cardsIn(page, group);
  };

  it.each<[string, (page: Page, title: string) => Promise<void>]>([
    ['a move with the keyboard', (page, title) => cardOf(page, title).press('Alt+ArrowDown')],
    ['a move with the mouse', (page, title) => cardOf(page, title).dragTo(page.getByRole('list', { name: 'Done' }))],
    ['a deletion', deleteCard],
  ])('%s that never arrives is undone, and the page says so', async (change, make) => {
    const page = await givenBoard();
    const before = await cardsIn(page, 'To do');
    await page.route('**/trpc/**', (route) => route.abort());

    await make(page, before[0]!);

    await untilTold(page, NOT_SAVED);
    expect(await cardsIn(page, 'To do')).toEqual(before);
    if (change.endsWith('keyboard')) {
      expect(await focused(page)).toBe(await cardOf(page, before[0]!).getAttribute('id'));
    }
  });

  it('a refused move is undone, with the reason', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Viewer');
    const before = await cardsIn(page, 'Get started');
    const move = await holdBackCall(page, 'cards.move');

    await cardOf(page, before[0]!).press('Alt+ArrowDown');
    await move.first;
    expect((await cardsIn(page, 'Get started'))[1]).toBe(before[0]);
    await page.route('**/trpc/**', (route) => route.abort());
    move.release();

    await untilTold(page, 'You can view this project but not change it.');
    expect(await cardsIn(page, 'Get started')).toEqual(before);
  });

  it('a move whose answer is lost stays if the service has it', async () => {
    const page = await givenBoard();
    await addCard(page, 'To do', 'Arrived');
    await page.route('**/trpc/*cards.move*', async (route) => {
      await route.fetch();
      await route.abort();
    });

    await cardOf(page, 'Arrived').press('Alt+ArrowRight');

    await untilTold(page, 'Moved “Arrived”.');
    expect((await cardsIn(page, 'In progress')).at(-1)).toBe('Arrived');
  });

  it('a move without any answer is undone, too', async () => {
    const { page: shared } = await givenStart();
    // A clock can't be taken away from a page again.
    const page = await shared.context().browser()!.newPage();
    await page.clock.install();
    await page.goto(shared.url());
    await signIn(page, 'Member');
    await openBoard(page, 'Launch plan');
    const before = await cardsIn(page, 'To do');
    const move = await holdBackCall(page, 'cards.move');

    await cardOf(page, before[0]!).press('Alt+ArrowDown');
    await move.first;
    await page.clock.fastForward(15_000);

    await untilTold(page, NOT_SAVED);
    expect(await cardsIn(page, 'To do')).toEqual(before);
    await page.close();
  });

  it('an answer does not disturb a drag', async () => {
    const page = await givenBoard();
    for (const title of ['Slow', 'Held']) await addCard(page, 'To do', title);
    const move = await holdBackCall(page, 'cards.move');
    await cardOf(page, 'Slow').press('Alt+ArrowRight');
    await move.first;

    await cardOf(page, 'Held').hover();
    await page.mouse.down();
    await page.getByRole('list', { name: 'Done' }).hover();
    move.release();
    await untilTold(page, 'Moved “Slow”.');
    expect(await cardsIn(page, 'Done')).toContain('Held');
    await page.mouse.up();

    await untilTold(page, 'Moved “Held”.');
    expect(await asStored(page, 'Done')).toContain('Held');
    expect(await cardsIn(page, 'In progress')).toContain('Slow');
  });

  it('Enter three times on a slow line makes one card', async () => {
    const page = await givenBoard();
    const create = await holdBackCall(page, 'cards.create');

    await inputOf(page, 'Done').fill('Once');
    for (let press = 0; press < 3; press++) await page.keyboard.press('Enter');
    await create.first;
    expect(await page.locator('.add[aria-busy]').count()).toBe(1);
    create.release();

    await untilTold(page, 'Added “Once”.');
    expect(create.count()).toBe(1);
    expect((await asStored(page, 'Done')).filter((title) => title === 'Once')).toHaveLength(1);
  });

  it('keeps the text of a card whose answer is lost; sent again, it makes no second card', async () => {
    const page = await givenBoard();
    await page.route('**/trpc/*cards.create*', async (route) => {
      await route.fetch();
      await route.abort();
    });

    await inputOf(page, 'Done').fill('Sent twice');
    await page.keyboard.press('Enter');
    await untilTold(page, NOT_SAVED);
    expect(await inputOf(page, 'Done').inputValue()).toBe('Sent twice');
    await page.unrouteAll();
    await page.keyboard.press('Enter');

    await untilTold(page, 'Added “Sent twice”.');
    expect(await inputOf(page, 'Done').inputValue()).toBe('');
    expect((await cardsIn(page, 'Done')).filter((title) => title === 'Sent twice')).toHaveLength(1);
  });

  it('every press of Alt+Down counts, however slow the line', async () => {
    const page = await givenBoard();
    for (const title of ['Fast 1', 'Fast 2', 'Fast 3', 'Fast 4']) await addCard(page, 'Done', title);
    const move = await holdBackCall(page, 'cards.move');

    await cardOf(page, 'Fast 1').focus();
    for (let press = 0; press < 3; press++) await page.keyboard.press('Alt+ArrowDown');
    await move.first;
    expect((await cardsIn(page, 'Done')).at(-1)).toBe('Fast 1');
    move.release();

    await untilTold(page, 'Moved “Fast 1”.');
    expect(move.count()).toBe(2);
    expect((await asStored(page, 'Done')).slice(-4)).toEqual(['Fast 2', 'Fast 3', 'Fast 4', 'Fast 1']);
  });

  it('sends moves of several cards in the order of the key presses', async () => {
    const page = await givenBoard();
    for (const title of ['Order 1', 'Order 2']) await addCard(page, 'Done', title);
    const move = await holdBackCall(page, 'cards.move');

    await cardOf(page, 'Order 1').press('Alt+ArrowLeft');
    await cardOf(page, 'Order 2').press('Alt+ArrowLeft');
    await cardOf(page, 'Order 1').press('Alt+ArrowDown');
    await move.first;
    expect(move.count()).toBe(1);
    move.release();

    await untilTold(page, 'Moved “Order 1”.');
    expect((await asStored(page, 'In progress')).slice(-2)).toEqual(['Order 2', 'Order 1']);
  });

  it('typed text, its selection and the focus stay while something else changes', async () => {
    const page = await givenBoard();
    await addCard(page, 'To do', 'Elsewhere');
    const move = await holdBackCall(page, 'cards.move');
    await cardOf(page, 'Elsewhere').press('Alt+ArrowRight');

    await inputOf(page, 'Done').fill('Half a sentence');
    await inputOf(page, 'Done').evaluate((input: HTMLInputElement) => input.setSelectionRange(5, 7));
    move.release();
    await untilTold(page, 'Moved “Elsewhere”.');

    const selection = '((one) => [one.value, one.selectionStart, one.selectionEnd])(document.activeElement)';
    expect(await page.evaluate<unknown>(selection)).toEqual(['Half a sentence', 5, 7]);
    await openBoard(page, 'Onboarding');
    await openBoard(page, 'Launch plan');
    expect(await inputOf(page, 'Done').inputValue()).toBe('Half a sentence');
  });

  it('after each change the tab has the number of cards; after a deletion the next card has the focus', async () => {
    const page = await givenBoard();
    const count = async () => Number(/\d+/.exec(await tabOf(page, 'Launch plan').innerText())?.[0]);
    const before = await count();

    for (const title of ['Counted', 'Next']) await addCard(page, 'To do', title);
    expect(await count()).toBe(before + 2);
    for (const title of ['Counted', 'Next']) {
      await cardOf(page, title).press('Alt+ArrowRight');
      await untilTold(page, `Moved “${title}”.`);
    }
    expect(await count()).toBe(before + 2);
    await deleteCard(page, 'Counted');
    await untilTold(page, 'Deleted “Counted”.');
    expect(await count()).toBe(before + 1);
    expect(await focused(page)).toBe(await cardOf(page, 'Next').getAttribute('id'));
  });

  it('Alt and an arrow never leaves the page while a card has the focus', async () => {
    const page = await givenBoard();
    await page.evaluate(
      `addEventListener('keydown', (event) => { document.body.dataset.isKept = event.defaultPrevented; })`,
    );
    const isKept = async (key: string) => {
      await page.keyboard.press(key);
      return page.evaluate('document.body.dataset.isKept');
    };

    await page.getByRole('list', { name: 'To do' }).locator('.card').first().focus();

    expect([await isKept('Alt+ArrowLeft'), await isKept('Alt+ArrowUp')]).toEqual(['true', 'true']);
    expect(await isKept('ArrowDown')).toBe('false');
    expect(await page.locator('#calls').getByText('cards.move').count()).toBe(0);
  });
});
