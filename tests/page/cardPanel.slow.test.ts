import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { DemoName } from '../../server/database/seed/demoUsers.ts';
import { hasBrowser, newPage } from '../harness/browser.ts';
import * as board from '../harness/page.ts';

const { button, cardOf, dialog, focused, holdBackCall, untilTold } = board;

describe.skipIf(!hasBrowser)('a card in its panel', () => {
  const { givenBoard, clientOf, open, db } = board.pageOfSuite();

  const panelOf = (page: Page) => page.locator('.panel');
  const field = (page: Page, label: string) => panelOf(page).getByLabel(label);
  const focusedValue = (page: Page) => page.evaluate<string>('document.activeElement.value');
  const chipsOf = (page: Page) => page.locator('.card.open .chips > *').allTextContents();
  const saved = async (page: Page, label: string) => {
    await field(page, label).press('Control+Enter');
    await panelOf(page).getByRole('button', { name: 'Take back' }).waitFor({ state: 'detached' });
    await panelOf(page).locator('.edited[aria-busy=true]').waitFor({ state: 'detached' });
  };
  /** Somebody looks at the card "Rope" on a new board. */
  const givenCard = async (as: DemoName = 'Member') => {
    const given = await givenBoard({ as, cards: ['Rope'] });
    const [card] = (await given.api.cards.list.query({ board_id: given.board.id })).cards;
    const { id } = card!;
    await cardOf(given.page, 'Rope').locator('.title').click();
    await panelOf(given.page).getByRole('heading', { name: 'Comments' }).waitFor();
    const stored = async () => (await given.api.cards.get.query({ id })).card;
    return { ...given, id, stored, owner: clientOf('Owner'), cardPath: `${given.path}/cards/${id}` };
  };
  const givenComments = async () => {
    const given = await givenCard();
    const { comment } = await given.owner.comments.create.mutate({ card_id: given.id, comment: 'Is it long enough?' });
    await commentOf(given.page, 'Is it long enough?').waitFor();
    return { ...given, comment };
  };
  const commentOf = (page: Page, text: string) => page.locator('.comment > p', { hasText: text }).locator('..');
  const commentsOf = (page: Page) => page.locator('.comment > p').allTextContents();

  it('each field is saved by itself, and the tile shows it', async () => {
    const { page, stored, problems } = await givenCard();

    await field(page, 'Owner').selectOption('Member');
    await field(page, 'Tag').selectOption('Technical');
    await field(page, 'Priority').selectOption('urgent');
    await field(page, 'Status').selectOption('Another…');
    await dialog(page, 'Status').getByLabel('Status').fill('on hold');
    await button(page, 'Use it').click();
    await field(page, 'Due').fill('2031-03-10');
    await field(page, 'Due').press('Enter');
    await button(page, 'Until tomorrow').click();
    await field(page, 'Description').fill('Thirty metres.\nBlue.');
    await field(page, 'Title').fill('Rope ladder');
    await field(page, 'Title').press('Enter');

    await cardOf(page, 'Rope ladder').waitFor();
    await expect.poll(stored).toMatchObject({
      ...{ title: 'Rope ladder', owner_id: 3, tag_id: 2, priority: 'urgent', status: 'on hold' },
      ...{ due_date: new Date('2031-03-10'), description: 'Thirty metres.\nBlue.', snoozed_until: expect.any(Date) },
    });
    const chips = ['Technical', 'Due Mar 10, 2031', 'urgent', 'on hold', 'snoozed', 'Owner: MemberM'];
    expect(await chipsOf(page)).toEqual(chips);
    expect(problems).toEqual([]);
  });

  it('a field that is saved while another one is waits for its answer', async () => {
    const { page, stored, problems } = await givenCard();
    const update = await holdBackCall(page, 'cards.update');
    await field(page, 'Description').fill('Thirty metres.');
    await field(page, 'Title').fill('Rope ladder');
    await update.first;

    await field(page, 'Title').press('Enter');
    update.release();

    await expect.poll(stored).toMatchObject({ title: 'Rope ladder', description: 'Thirty metres.' });
    await cardOf(page, 'Rope ladder').waitFor();
    expect(problems).toEqual([]);
  });

  it('a due date can have a time, and goes again', async () => {
    const { page, stored } = await givenCard();
    await field(page, 'Due').fill('2031-03-10');
    await field(page, 'Time, if any').fill('09:30');
    await saved(page, 'Time, if any');
    expect(await stored()).toMatchObject({ due_date: await page.evaluate(() => new Date(2031, 2, 10, 9, 30)) });
    expect(await chipsOf(page)).toEqual(['Due Mar 10, 2031 9:30 AM']);

    await button(page, 'No date').click();

    await expect.poll(stored).toMatchObject({ due_date: null });
    await expect.poll(() => chipsOf(page)).toEqual([]);
  });

  it('Escape closes the editor and keeps what was typed, for this user, until it is saved or they sign out', async () => {
    const { page, path, cardPath, stored } = await givenCard();
    await field(page, 'Description').fill('Not yet');

    await field(page, 'Description').press('Escape');
    await panelOf(page).getByText('Unsaved draft').waitFor();
    expect(await field(page, 'Description').count()).toBe(0);
    expect(await focused(page)).toBe('Go on');
    await page.keyboard.press('Escape');
    await panelOf(page).waitFor({ state: 'detached' });
    expect(new URL(page.url()).pathname).toBe(path);
    expect(await focused(page)).toBe('Rope');
    await cardOf(page, 'Rope').getByText('unsaved draft').waitFor();
    expect(await stored()).toMatchObject({ description: null });

    await page.goto(new URL(cardPath, page.url()).href);
    await expect.poll(() => field(page, 'Description').inputValue()).toBe('Not yet');
    await button(page, 'Close the card').click();
    await board.choose(page, 'Account of Member', 'Sign out');
    await button(page, 'Member').click();
    await cardOf(page, 'Rope').waitFor();
    expect(await cardOf(page, 'Rope').getByText('unsaved draft').count()).toBe(0);
  });

  it('a draft that was left goes on, is taken back, and ends after 30 days', async () => {
    const { page, stored } = await givenCard();
    const shelve = async (text: string) => {
      await field(page, 'Description').fill(text);
      await field(page, 'Description').press('Escape');
    };
    await shelve('One');
    await button(page, 'Go on').click();
    expect(await focusedValue(page)).toBe('One');
    await saved(page, 'Description');
    await expect.poll(stored).toMatchObject({ description: 'One' });
    await shelve('Two');
    await button(page, 'Take back').click();
    expect(await field(page, 'Description').inputValue()).toBe('One');
    await shelve('Three');

    await page.evaluate(`for (const [key, text] of Object.entries(localStorage))
      if (key.includes('draft')) localStorage[key] = text.replace(/"at":\\d+/, '"at":' + (Date.now() - 31 * 86400000))`);
    await page.reload();

    await expect.poll(() => field(page, 'Description').inputValue()).toBe('One');
  });

  it('an empty title is refused, and the card keeps its own', async () => {
    const { page, stored } = await givenCard();
    await field(page, 'Title').fill('  ');

    await field(page, 'Title').press('Enter');

    await panelOf(page).getByText("Title can't be empty.").waitFor();
    await panelOf(page).getByRole('button', { name: 'Take back' }).click();
    expect(await field(page, 'Title').inputValue()).toBe('Rope');
    expect(await stored()).toMatchObject({ title: 'Rope' });
  });

  it.each([
    ['Save mine', 'Cable'],
    ['Leave it as it is now', 'Chain'],
  ])('412 for a title that somebody else has changed shows both; “%s” counts', async (choice, kept) => {
    const { page, id, owner, stored } = await givenCard();
    const update = await holdBackCall(page, 'cards.update');
    const refused = page.waitForResponse(/cards\.update/);
    await field(page, 'Title').fill('Cable');
    await field(page, 'Title').press('Enter');
    await update.first;

    await owner.cards.update.mutate({ id, title: 'Chain' });
    update.release();

    expect((await refused).status()).toBe(412);
    const conflict = panelOf(page).locator('.conflict');
    await conflict.getByText('Owner has changed this while you were editing it. Which one is to stay?').waitFor();
    expect(await conflict.locator('dd').allTextContents()).toEqual(['Chain', 'Cable']);
    await button(page, choice).click();
    await conflict.waitFor({ state: 'detached' });
    await expect.poll(stored).toMatchObject({ title: kept });
    await expect.poll(() => field(page, 'Title').inputValue()).toBe(kept);
    await cardOf(page, kept).waitFor();
  });

  it('412 for a change of another field is sent again, and both stay', async () => {
    const { page, id, owner, stored } = await givenCard();
    const update = await holdBackCall(page, 'cards.update');
    await field(page, 'Title').fill('Cable');
    await field(page, 'Title').press('Enter');
    await update.first;

    await owner.cards.update.mutate({ id, priority: 'low' });
    update.release();

    await expect.poll(stored).toMatchObject({ title: 'Cable', priority: 'low' });
    await cardOf(page, 'Cable').getByText('low').waitFor();
    expect(update.count()).toBeGreaterThan(1);
  });

  it('a change of somebody else keeps what was typed, and the focus', async () => {
    const { page, id, owner, stored } = await givenCard();
    await field(page, 'Description').pressSequentially('Mine, and');

    await owner.cards.update.mutate({ id, description: 'Theirs', status: 'closed' });
    await panelOf(page).locator('.conflict').getByText('Theirs').waitFor();
    await page.keyboard.type(' more');

    expect(await field(page, 'Description').inputValue()).toBe('Mine, and more');
    expect(await field(page, 'Status').inputValue()).toBe('closed');
    expect(await stored()).toMatchObject({ description: 'Theirs' });
  });

  it('a card that could not be read comes back by itself', async () => {
    const { page, cardPath } = await givenCard();
    await page.route('**/trpc/*cards.get*', (route) => route.abort());
    await page.reload();
    await panelOf(page).getByText('The service could not be reached.').waitFor();

    await page.unrouteAll();

    await expect.poll(() => field(page, 'Title').inputValue()).toBe('Rope');
    expect(new URL(page.url()).pathname).toBe(cardPath);
  });

  it('comments are new to each user until they have looked', async () => {
    const { page, owner, id } = await givenComments();
    const newOnes = () => page.locator('.comment', { has: page.getByText('new', { exact: true }) }).locator('> p');
    expect(await newOnes().allTextContents()).toEqual(['Is it long enough?']);

    await button(page, 'Close the card').click();
    await owner.comments.create.mutate({ card_id: id, comment: 'Well?' });
    await cardOf(page, 'Rope').locator('.title').click();
    await commentOf(page, 'Well?').waitFor();
    expect(await newOnes().allTextContents()).toEqual(['Well?']);
    await page.getByText('1 new since you looked', { exact: true }).waitFor();

    await page.reload();
    await commentOf(page, 'Well?').waitFor();
    expect(await newOnes().count()).toBe(0);
    expect((await owner.comments.list.query({ card_id: id })).threads).toMatchObject([{ is_read: false }, {}]);
  });

  it('comments are written, answered, deleted and brought back', async () => {
    const { page, owner, id, problems } = await givenComments();
    const first = commentOf(page, 'Is it long enough?');

    await button(page, 'Reply: Owner').click();
    await field(page, 'Reply to Owner').fill('Yes, it is.');
    await button(page, 'Send the reply').click();
    await first.locator('.comment', { hasText: 'Yes, it is.' }).waitFor();
    await field(page, 'Write a comment').fill('Buy another one');
    await button(page, 'Comment').click();
    await commentOf(page, 'Buy another one').waitFor();
    expect(await field(page, 'Write a comment').inputValue()).toBe('');
    await commentOf(page, 'Buy another one').getByRole('button', { name: 'Delete' }).click();
    await untilTold(page, 'Deleted the comment, with its replies.');
    await expect.poll(() => commentsOf(page)).toEqual(['Is it long enough?', 'Yes, it is.']);
    await button(page, 'Undo').click();

    await expect.poll(() => commentsOf(page)).toEqual(['Is it long enough?', 'Yes, it is.', 'Buy another one']);
    const { threads } = await owner.comments.list.query({ card_id: id });
    expect(threads).toMatchObject([{ replies: [{ comment: 'Yes, it is.' }] }, { user_id: 3 }]);
    expect(problems).toEqual([]);
  });

  it('a comment and a reply that were not sent survive a reload', async () => {
    const { page } = await givenComments();
    await field(page, 'Write a comment').fill('Half a sent');
    await button(page, 'Reply: Owner').click();
    await field(page, 'Reply to Owner').fill('Half an ans');

    await page.reload();

    await expect.poll(() => field(page, 'Write a comment').inputValue()).toBe('Half a sent');
    expect(await field(page, 'Reply to Owner').inputValue()).toBe('Half an ans');
  });

  it.each(['at once', 'after a reload'])(
    'a comment whose answer is lost, and that is sent again %s, is one',
    async (when) => {
      const { page, owner, id } = await givenCard();
      await page.route('**/trpc/*comments.create*', async (route) => {
        await route.fetch();
        await route.abort();
      });
      await field(page, 'Write a comment').fill('Only once');
      await button(page, 'Comment').click();
      await panelOf(page).getByText('The service could not be reached.').waitFor();
      await commentOf(page, 'Only once').waitFor();
      await page.unrouteAll();

      if (when !== 'at once') await page.reload();
      expect(await field(page, 'Write a comment').inputValue()).toBe('Only once');
      await button(page, 'Comment').click();

      await expect.poll(() => field(page, 'Write a comment').inputValue()).toBe('');
      expect((await owner.comments.list.query({ card_id: id })).threads).toHaveLength(1);
      await expect.poll(() => commentsOf(page)).toEqual(['Only once']);
    },
  );

  it('the history says who did what, newest first, and goes on', async () => {
    const { page, id, owner } = await givenCard();
    await owner.cards.update.mutate({ id, priority: 'high', owner_id: 2 });
    const entries = async () =>
      (await page.locator('.history li').allInnerTexts()).map((text) => text.replace(/ (now|this minute).*/, ''));

    await page.getByText('History', { exact: true }).click();
    await expect.poll(entries).toEqual(['Owner changed owner and priority', 'Somebody who is not a member created it']);
    await owner.comments.create.mutate({ card_id: id, comment: 'Seen' });

    await expect.poll(async () => (await entries())[0]).toBe('Owner commented');
    expect(await page.locator('.history').getByText('is not kept').count()).toBe(0);
  });

  it('the history says what is not kept', async () => {
    const { page } = await givenCard();
    await open(page, '/projects/1/boards/2/cards/16');

    await page.getByText('History', { exact: true }).click();

    await page.getByText(/^Created .*\. What happened before now is not kept\.$/).waitFor();
  });

  it('the HTML of a template is shown apart from the page: no script, no picture of another host', async () => {
    const { page, problems } = await givenCard();
    const description = `<p style="text-align:center">Open <b onclick="ran = 1">each</b> part</p>
      <script>ran = 1</script><svg onload="ran = 1"></svg><a href="javascript:ran = 1">here</a>
      <img src="http://elsewhere.test/map.png" alt="A map" onerror="ran = 1"><style>body { display: none }</style>`;
    await db().updateTable('cards').set({ description }).where('id', '=', 6).execute();

    await open(page, '/projects/1/boards/3/cards/6');
    const text = panelOf(page).getByText('Open each part');
    await text.waitFor();

    expect(await text.evaluate((shown) => shown.getRootNode() instanceof ShadowRoot)).toBe(true);
    expect(await text.evaluate((shown) => getComputedStyle(shown).textAlign)).toBe('center');
    await panelOf(page).getByText('Picture from another host is not shown: A map').waitFor();
    await text.getByText('each').click();
    await panelOf(page).getByText('here').click();
    expect(await page.evaluate('"ran" in window')).toBe(false);
    expect(problems.filter((problem) => problem.startsWith('asked for'))).toEqual([]);
  });

  it('a viewer sees everything as text, and no controls', async () => {
    const { page, id, owner, problems } = await givenCard('Viewer');

    await owner.cards.update.mutate({ id, description: 'Thirty metres.', tag_id: 1, owner_id: 3 });
    await owner.comments.create.mutate({ card_id: id, comment: 'Is it long enough?' });

    for (const shown of ['Thirty metres.', 'Content', 'Member', 'Not snoozed', 'Is it long enough?'])
      await panelOf(page).getByText(shown, { exact: true }).waitFor();
    expect(await panelOf(page).locator('input, textarea, select').count()).toBe(0);
    expect(
      await panelOf(page)
        .getByRole('button')
        .evaluateAll((all) => all.map(({ ariaLabel }) => ariaLabel)),
    ).toEqual(['Close the card']);
    expect(problems).toEqual([]);
  });

  it('a card that does not exist is said to be missing', async () => {
    const { page, path } = await givenCard();

    await open(page, `${path}/cards/999999`);

    await panelOf(page).getByRole('heading', { name: 'This card is not here' }).waitFor();
    expect(await page.title()).toBe('No such card · Harbor Website · Deckhand');
    await button(page, 'Close').click();
    await panelOf(page).waitFor({ state: 'detached' });
  });

  it('a card that somebody else deletes goes, and comes back with what was typed', async () => {
    const { page, id, owner } = await givenCard();
    await field(page, 'Description').fill('Not saved yet');

    await owner.cards.delete.mutate({ id });
    await panelOf(page).getByRole('heading', { name: 'This card is not here' }).waitFor();
    await cardOf(page, 'Rope').waitFor({ state: 'detached' });
    await owner.cards.restore.mutate({ id });

    await expect.poll(() => field(page, 'Description').inputValue()).toBe('Not saved yet');
    await cardOf(page, 'Rope').waitFor();
  });

  it('“Due and mine” lists the card, and opens and changes it', async () => {
    const { page, id, owner } = await givenCard();
    await owner.cards.update.mutate({ id, title: 'Rope of mine', owner_id: 3 });
    await page.getByRole('link', { name: 'Due and mine' }).click();
    const mine = page.locator('section', { has: page.getByRole('heading', { name: 'Mine', exact: true }) });

    await mine.getByRole('link', { name: 'Rope of mine' }).click();
    expect(new URL(page.url()).pathname).toBe(`/projects/1/due/cards/${id}`);
    await field(page, 'Title').fill('Rope, still mine');
    await field(page, 'Title').press('Enter');
    await mine.getByRole('link', { name: 'Rope, still mine' }).waitFor();
    await field(page, 'Due').fill('2020-02-29');
    await field(page, 'Due').press('Enter');

    const due = page.locator('section', { has: page.getByRole('heading', { name: /^Due within/ }) });
    await due.locator('.card', { hasText: 'still mine' }).getByText('Feb 29, 2020').waitFor();
  });

  it('a deleted card is restored from the trash', async () => {
    const { page, board: shown } = await givenCard();
    await panelOf(page).getByRole('button', { name: 'Delete', exact: true }).click();
    await untilTold(page, 'Deleted “Rope”.');
    await panelOf(page).waitFor({ state: 'detached' });

    await page.getByRole('link', { name: 'Trash' }).click();
    await button(page, 'Restore card Rope').first().click();
    await untilTold(page, 'Restored “Rope”.');
    await board.tabOf(page, shown.title).click();

    await cardOf(page, 'Rope').waitFor();
  });

  it('New York and Tokyo show the same day for a date without a time', async () => {
    const { cardPath, stored } = await givenCard();
    const look = async (timezoneId: string) => {
      const other = await newPage({ timezoneId });
      await open(other, cardPath);
      return other;
    };
    const newYork = await look('America/New_York');
    await field(newYork, 'Due').fill('2031-03-10');
    await saved(newYork, 'Due');
    const tokyo = await look('Asia/Tokyo');

    for (const there of [newYork, tokyo]) {
      await expect.poll(() => chipsOf(there)).toEqual(['Due Mar 10, 2031']);
      await expect.poll(() => field(there, 'Due').inputValue()).toBe('2031-03-10');
    }
    expect(await stored()).toMatchObject({ due_date: new Date('2031-03-10') });
  });

  it('a session that ends keeps what was typed, and saves it after signing in again', async () => {
    const { page, cardPath, stored } = await givenCard();
    await field(page, 'Description').fill('A long text');

    await clientOf('Member').account.signOutEverywhere.mutate({});
    await field(page, 'Description').press('Control+Enter');
    const again = dialog(page, 'Sign in again');
    await again.getByLabel('Password').fill('demo-password');
    for (let press = 0; press < 3; press++) await page.keyboard.press('Escape');
    await again.getByRole('button', { name: 'Sign in', exact: true }).click();

    await expect.poll(stored).toMatchObject({ description: 'A long text' });
    await again.waitFor({ state: 'detached' });
    expect(await field(page, 'Description').inputValue()).toBe('A long text');
    expect(new URL(page.url()).pathname).toBe(cardPath);
  });
});
