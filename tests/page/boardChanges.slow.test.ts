import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hasBrowser, newPage } from '../harness/browser.ts';
import * as board from '../harness/page.ts';

const { addCard, button, cardOf, cardsIn, choose, dragOver, focused, holdBackCall, holdMove, inputOf, listOf } = board;
const { pressOn, send, tabOf, untilMoved, untilTold, DOING, DONE, TO_DO } = board;
const NOT_SAVED = 'Your change was not saved. The service could not be reached.';

describe.skipIf(!hasBrowser)('changes on a board', () => {
  const { givenBoard, open } = board.pageOfSuite();
  const deleteCard = (page: Page, title: string) => choose(page, `Actions for ${title}`, 'Delete');
  const asStored = async (page: Page, group: string) => {
    await page.reload();
    await page.locator('.card').first().waitFor();
    return cardsIn(page, group);
  };
  /** Returns the idempotency keys of the calls. */
  const loseAnswers = async (page: Page, procedure: string) => {
    const keys: (string | undefined)[] = [];
    await page.route(`**/trpc/*${procedure}*`, async (route) => {
      keys.push(route.request().headers()['idempotency-key']);
      await route.fetch();
      await route.abort();
    });
    return keys;
  };

  it('a card is added, moved with mouse and keyboard, deleted, and brought back; counts and focus are right', async () => {
    const { page, problems } = await givenBoard();
    const counts = () => page.locator('#boards [aria-current] .count, #content .count').allInnerTexts();
    await expect.poll(counts).toEqual(['3', '3 cards', '3', '0', '0']);

    await addCard(page, DONE, 'Chart');
    await expect.poll(counts).toEqual(['4', '4 cards', '3', '0', '1']);
    await cardOf(page, 'Rope').dragTo(cardOf(page, 'Chart'), { targetPosition: { x: 60, y: 4 } });
    await untilMoved(page, 'Rope', DONE, '1 of 2');
    expect(await cardsIn(page, DONE)).toEqual(['Rope', 'Chart']);
    expect(await page.locator('.panel').count()).toBe(0);

    await pressOn(page, 'Rope', 'Alt+ArrowDown');
    await untilMoved(page, 'Rope', DONE, '2 of 2');
    await pressOn(page, 'Rope', 'Alt+ArrowLeft');
    await untilMoved(page, 'Rope', DOING, '1 of 1');
    expect(await focused(page)).toBe('Rope');
    // Where there is no place to go to, the key does not leave the page, either.
    await page.evaluate("addEventListener('keydown', (event) => { window.isKept = event.defaultPrevented; })");
    const isKept = (key: string) => page.keyboard.press(key).then(() => page.evaluate('isKept'));
    expect([await isKept('Alt+ArrowUp'), await isKept('Alt+ArrowDown')]).toEqual([true, true]);
    expect(await isKept('ArrowDown')).toBe(false);
    expect(await asStored(page, DOING)).toEqual(['Rope']);

    await deleteCard(page, 'Anchor');
    await untilTold(page, 'Deleted “Anchor”.');
    await expect.poll(counts).toEqual(['3', '3 cards', '1', '1', '1']);
    expect(await focused(page)).toBe('Sail');
    await button(page, 'Undo').click();
    await untilTold(page, '“Anchor” is back.');
    expect(await asStored(page, TO_DO)).toEqual(['Anchor', 'Sail']);
    expect(problems).toEqual([]);
  });

  it.each<[string, (page: Page) => Promise<void>]>([
    ['a move with the keyboard', (page) => pressOn(page, 'Rope', 'Alt+ArrowDown')],
    ['a move to another group with the keyboard', (page) => pressOn(page, 'Rope', 'Alt+ArrowRight')],
    ['a move with the mouse', (page) => cardOf(page, 'Rope').dragTo(listOf(page, DONE))],
    ['a deletion', (page) => deleteCard(page, 'Rope')],
  ])('%s that never arrives is taken back, and the page says so', async (change, make) => {
    const { page } = await givenBoard();
    await page.route('**/trpc/**', (route) => route.abort());

    await make(page);

    await untilTold(page, NOT_SAVED);
    expect(await cardsIn(page, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail']);
    if (change.endsWith('keyboard')) expect(await focused(page)).toBe('Rope');
  });

  it('a refused move is taken back, with the reason', async () => {
    const { page, api, groups } = await givenBoard();
    const move = await holdMove(page, 'Rope', 'Alt+ArrowRight');
    expect(await cardsIn(page, DOING)).toEqual(['Rope']);

    await api.groups.delete.mutate({ id: groups[1]! });
    move.release();

    await page.getByText(/^Your change was not saved\. .+ does not exist\.$/).waitFor();
    await listOf(page, DOING).waitFor({ state: 'detached' });
    expect(await cardsIn(page, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail']);
  });

  it('a move whose answer is lost stays if the service has it', async () => {
    const { page } = await givenBoard();
    await loseAnswers(page, 'cards.move');

    await pressOn(page, 'Rope', 'Alt+ArrowRight');

    await untilMoved(page, 'Rope', DOING, '1 of 1');
    expect(await cardsIn(page, DOING)).toEqual(['Rope']);
    expect(await page.locator('#failure').innerText()).toBe('');
  });

  it('a move without any answer is taken back, too', async () => {
    const { path } = await givenBoard();
    // A clock can't be taken away from a page again.
    const page = await newPage();
    await page.clock.install();
    await open(page, path);

    await holdMove(page, 'Rope', 'Alt+ArrowDown');
    await page.clock.fastForward(15_000);

    await untilTold(page, NOT_SAVED);
    expect(await cardsIn(page, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail']);
  });

  it('Escape takes a drag back, and an answer does not disturb it', async () => {
    const { page } = await givenBoard();
    await dragOver(page, 'Rope', DONE);
    expect(await cardsIn(page, DONE)).toEqual(['Rope']);
    await page.keyboard.press('Escape');
    await page.mouse.up();
    expect(await cardsIn(page, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail']);

    const move = await holdMove(page, 'Anchor', 'Alt+ArrowRight');
    await dragOver(page, 'Sail', DONE);
    move.release();
    await untilMoved(page, 'Anchor', DOING, '1 of 1');
    expect(await cardsIn(page, DONE)).toEqual(['Sail']);
    await page.mouse.up();

    await untilMoved(page, 'Sail', DONE, '1 of 1');
    expect(await asStored(page, DONE)).toEqual(['Sail']);
    expect(await cardsIn(page, DOING)).toEqual(['Anchor']);
  });

  it('a card is made once: by Enter three times on a slow line, and again after a lost answer', async () => {
    const { page } = await givenBoard();
    const create = await holdBackCall(page, 'cards.create');
    await inputOf(page, DONE).fill('Once');
    for (let press = 0; press < 3; press++) await page.keyboard.press('Enter');
    await create.first;
    expect(await page.locator('.pending').allInnerTexts()).toEqual(['Once']);
    create.release();
    await untilTold(page, 'Added “Once”.');
    expect(create.count()).toBe(1);
    await page.unrouteAll();

    const lost = await loseAnswers(page, 'cards.create');
    await send(page, { [`Add a card to ${DONE}`]: 'Sent twice' });
    await untilTold(page, NOT_SAVED);
    expect(await inputOf(page, DONE).inputValue()).toBe('Sent twice');
    await page.unrouteAll();
    const sent = page.waitForRequest(/cards\.create/);
    await page.keyboard.press('Enter');
    await untilTold(page, 'Added “Sent twice”.');

    expect(new Set(lost)).toEqual(new Set([(await sent).headers()['idempotency-key']]));
    expect(await inputOf(page, DONE).inputValue()).toBe('');
    expect(await asStored(page, DONE)).toEqual(['Once', 'Sent twice']);
  });

  it('what is typed while something is added stays: cards, groups and comments', async () => {
    const { page } = await givenBoard();
    await cardOf(page, 'Rope').locator('.title').click();
    const whileHeld = async (procedure: string, label: string, text: string) => {
      const input = page.getByLabel(label, { exact: true });
      const call = await holdBackCall(page, procedure);
      await input.fill(text);
      await page.keyboard.press(label.startsWith('Write') ? 'Tab' : 'Enter');
      if (label.startsWith('Write')) await page.keyboard.press('Enter');
      await call.first;
      if (!label.startsWith('Write')) expect(await input.inputValue()).toBe('');
      await input.focus();
      await page.keyboard.press('End');
      await page.keyboard.type('Half');
      call.release();
    };

    await whileHeld('cards.create', `Add a card to ${DONE}`, 'Chart');
    await untilTold(page, 'Added “Chart”.');
    expect(await page.locator('.pending').count()).toBe(0);
    await whileHeld('groups.create', 'Add a group', 'Later');
    await listOf(page, 'Later').waitFor();
    await whileHeld('comments.create', 'Write a comment', 'Sent. ');
    await page.locator('.comment > p', { hasText: 'Sent.' }).waitFor();

    for (const label of [`Add a card to ${DONE}`, 'Add a group', 'Write a comment'])
      await expect.poll(() => page.getByLabel(label, { exact: true }).inputValue()).toBe('Half');
  });

  it('a card that is not added is offered again beside what was typed meanwhile, also after a reload', async () => {
    const { page } = await givenBoard();
    const failing = Promise.withResolvers<void>();
    await page.route('**/trpc/*cards.create*', async (route) => {
      await failing.promise;
      await route.abort();
    });
    await send(page, { [`Add a card to ${DONE}`]: 'First' });
    await inputOf(page, DONE).fill('Second');
    failing.resolve();
    await page.getByText('“First” is not added.').waitFor();
    expect([await cardsIn(page, DONE), await inputOf(page, DONE).inputValue()]).toEqual([[], 'Second']);

    await page.reload();
    await page.getByText('“First” is not added.').waitFor();
    await page.unrouteAll();
    await button(page, 'Add it: First').click();
    await untilTold(page, 'Added “First”.');
    expect([await cardsIn(page, DONE), await inputOf(page, DONE).inputValue()]).toEqual([['First'], 'Second']);
  });

  it('a card that is under way when the page is loaded again is not lost, and made once', async () => {
    const { page } = await givenBoard();
    await page.route('**/trpc/*cards.create*', (route) => void route.fetch());
    await send(page, { [`Add a card to ${DONE}`]: 'Under way' });
    await page.locator('.pending').waitFor();

    await page.reload();
    await expect.poll(() => inputOf(page, DONE).inputValue()).toBe('Under way');
    await page.unrouteAll();
    await inputOf(page, DONE).press('Enter');
    await untilTold(page, 'Added “Under way”.');

    expect(await asStored(page, DONE)).toEqual(['Under way']);
  });

  it('a card that the filter hides is shown when it is added, until the filter changes', async () => {
    const { page } = await givenBoard();
    await page.getByLabel('Find cards').fill('an');
    await expect.poll(() => cardsIn(page, TO_DO)).toEqual(['Anchor']);

    await addCard(page, TO_DO, 'Chart');
    await addCard(page, TO_DO, 'Lantern');
    expect(await cardsIn(page, TO_DO)).toEqual(['Anchor', 'Chart', 'Lantern']);
    await cardOf(page, 'Chart').getByText('hidden by the filter').waitFor();
    expect(await page.getByText('hidden by the filter').count()).toBe(1);
    await page.getByLabel('Find cards').fill('anc');

    await expect.poll(() => cardsIn(page, TO_DO)).toEqual(['Anchor']);
  });

  it('own moves are read aloud, and shown in no message', async () => {
    const { page } = await givenBoard();

    await pressOn(page, 'Rope', 'Alt+ArrowRight');
    await untilMoved(page, 'Rope', DOING, '1 of 1');

    expect(await page.locator('.message').count()).toBe(0);
    expect(await page.getByRole('status').getByText('Moved “Rope”').count()).toBe(1);
  });

  it('every key press counts, in its order, however slow the line', async () => {
    const { page } = await givenBoard({ cards: ['Fast', 'Two', 'Three', 'Four'] });
    const move = await holdBackCall(page, 'cards.move');
    const placeOfFast = async () => [(await cardsIn(page, TO_DO)).indexOf('Fast'), await focused(page)];

    await cardOf(page, 'Fast').locator('.title').focus();
    for (let press = 1; press <= 3; press++) {
      await page.keyboard.press('Alt+ArrowDown');
      await expect.poll(placeOfFast).toEqual([press, 'Fast']);
    }
    await pressOn(page, 'Two', 'Alt+ArrowRight');
    await pressOn(page, 'Three', 'Alt+ArrowRight');
    await pressOn(page, 'Two', 'Alt+ArrowDown');
    await move.first;
    expect(move.count()).toBe(1);
    move.release();

    await untilMoved(page, 'Two', DOING, '2 of 2');
    expect(move.count()).toBe(5);
    expect(await asStored(page, TO_DO)).toEqual(['Four', 'Fast']);
    expect(await cardsIn(page, DOING)).toEqual(['Three', 'Two']);
  });

  it('typed text, its selection and the focus stay while something else changes, and the text on another board', async () => {
    const { page, path } = await givenBoard();
    const move = await holdMove(page, 'Rope', 'Alt+ArrowRight');

    await inputOf(page, DONE).fill('Half a sentence');
    await inputOf(page, DONE).evaluate((input: HTMLInputElement) => input.setSelectionRange(5, 7));
    move.release();
    await untilMoved(page, 'Rope', DOING, '1 of 1');

    const selection = '((one) => [one.value, one.selectionStart, one.selectionEnd])(document.activeElement)';
    expect(await page.evaluate<unknown>(selection)).toEqual(['Half a sentence', 5, 7]);
    await tabOf(page, 'Onboarding').click();
    await listOf(page, 'Go further').waitFor();
    await page.locator(`#boards a[href="${path}"]`).click();
    expect(await inputOf(page, DONE).inputValue()).toBe('Half a sentence');
  });
});
