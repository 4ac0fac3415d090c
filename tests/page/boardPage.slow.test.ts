import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { query } from '../../server/database/query.ts';
import { hasBrowser, isWiderThanScreen, newPage, PHONE } from '../harness/browser.ts';
import * as board from '../harness/page.ts';
import { testService } from '../harness/service.ts';

const { addCard, button, cardOf, cardsIn, choose, dialog, groupsOf, holdBackCall, holdMove, inputOf, listOf } = board;
const { pressOn, send, tabOf, untilMoved, untilTold, DOING, DONE, TO_DO } = board;
const UNREACHABLE = 'The service could not be reached.';

describe.skipIf(!hasBrowser)('the page', () => {
  const { givenStart, givenBoard, givenPage, clientOf, open, db } = board.pageOfSuite();
  const pathOf = (page: Page) => page.evaluate<string>('location.pathname + location.search');
  const panelOf = (page: Page, title: string) => page.getByRole('complementary', { name: `Card ${title}` });
  const countsOf = (page: Page) => page.locator('#content .count').allInnerTexts();
  const many = (count: number) => Array.from({ length: count }, (_, at) => `Card ${at + 1}`);
  const signOut = (page: Page) => choose(page, 'Account of Member', 'Sign out');

  it('lists the calls that it made; after signing out it sends and shows nothing, also not to the next user', async () => {
    const { page } = await givenBoard();
    await page.getByText('Calls', { exact: true }).click();
    const calls = await page.locator('.calls code').allInnerTexts();
    expect(calls).toContain('await client.account.whoAmI.query();');
    expect(calls).toContain('await client.as({"projectId":1}).boards.list.query();');
    const move = await holdMove(page, 'Rope', 'Alt+ArrowDown');
    await pressOn(page, 'Sail', 'Alt+ArrowRight');

    await signOut(page);
    await button(page, 'Open the demo board').waitFor();
    expect(await page.locator('.card, .calls li, .messages p').count()).toBe(0);
    expect(await page.evaluate('Object.keys(localStorage)')).toEqual([]);
    await button(page, 'Owner').click();
    await cardOf(page, 'Rope').waitFor();
    move.release();
    await addCard(page, DONE, 'Afterwards');

    expect(move.count()).toBe(1);
    expect(await page.locator('.messages span').allInnerTexts()).toEqual(['Added “Afterwards”.']);
    expect(await page.locator('.calls').getByText('cards.move').count()).toBe(0);
  });

  it('has a form where there is no demo data, which says why it failed and keeps what was typed', async () => {
    const { page } = await givenStart({ url: (await testService()).url });
    const form = page.locator('main form');

    await send(form, { 'E-mail address': 'me@harbor.test', Password: 'wrong' });
    await form.locator('.failure', { hasText: 'password' }).waitFor();
    await page.route('**/trpc/auth.authenticate*', (route) => route.abort());
    await send(form, { Password: 'right' });
    await form.getByRole('alert').getByText(UNREACHABLE).waitFor();

    expect(await form.getByLabel('E-mail address').inputValue()).toBe('me@harbor.test');
    expect(await button(page, 'Open the demo board').count()).toBe(0);
  });

  it('offers a viewer nothing that would be refused', async () => {
    const { page, problems } = await givenBoard({ as: 'Viewer' });

    const offered = page.locator('#content :is(button, input, select)');
    const names = await offered.evaluateAll((all) => all.map((one) => one.ariaLabel ?? one.textContent));
    expect(names).toEqual(['Find cards', 'Owner', 'Tag', 'Status', 'Due']);
    expect(await page.locator('#sidebar', { hasText: /New board|Trash|Webhooks/ }).count()).toBe(0);

    await pressOn(page, 'Rope', 'Alt+ArrowRight');
    await cardOf(page, 'Rope').dragTo(listOf(page, DONE));
    expect(await cardsIn(page, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail']);
    await cardOf(page, 'Rope').click();
    await panelOf(page, 'Rope').waitFor();
    expect(problems).toEqual([]);
  });

  it('its address leads to the same board, card and filter: after a reload, for others, and back', async () => {
    const { page, path, ...given } = await givenBoard();
    expect(await page.title()).toBe(`${given.board.title} · Harbor Website · Deckhand`);
    await page.getByLabel('Find cards').fill('an');
    await expect.poll(() => cardsIn(page, TO_DO)).toEqual(['Anchor']);
    expect(await page.locator('.group .count').allInnerTexts()).toEqual(['1 of 3', '0', '0']);
    await cardOf(page, 'Anchor').click();
    await panelOf(page, 'Anchor').waitFor();
    expect(await pathOf(page)).toMatch(new RegExp(`^${path}/cards/\\d+\\?text=an$`));
    expect(await page.title()).toBe('Anchor · Harbor Website · Deckhand');

    const other = await newPage();
    await other.goto(page.url());
    await button(other, 'Viewer').click();
    await page.reload();
    for (const one of [page, other]) {
      await panelOf(one, 'Anchor').waitFor();
      await expect.poll(() => cardsIn(one, TO_DO)).toEqual(['Anchor']);
      expect(await one.getByLabel('Find cards').inputValue()).toBe('an');
    }

    await page.goBack();
    await panelOf(page, 'Anchor').waitFor({ state: 'detached' });
    await button(page, 'Clear').click();
    await expect.poll(() => cardsIn(page, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail']);
    expect(await pathOf(page)).toBe(path);
    await page.goto(new URL('/projects/1/boards/999999', page.url()).href);
    await page.getByRole('heading', { name: "This board can't be shown" }).waitFor();
    await page.goto(new URL('/projects/3', page.url()).href);
    await page.getByText('There is no such project, or you are not a member of it.').waitFor();
  });

  it('a second tab is signed in until one of them signs out', async () => {
    const given = await givenBoard();
    const page = await newPage();
    await open(page, given.path);
    const second = await page.context().newPage();
    await second.goto(page.url());
    await cardOf(second, 'Rope').waitFor();

    await signOut(second);

    for (const tab of [page, second]) {
      await button(tab, 'Open the demo board').waitFor();
      expect(await tab.locator('.card').count()).toBe(0);
    }
    await button(page, 'Member').click();
    for (const tab of [page, second]) await cardOf(tab, 'Rope').waitFor();
    expect(await pathOf(second)).toBe(given.path);
  });

  it('shows the board of the last click, not of the last answer', async () => {
    const { page, path } = await givenBoard();
    await tabOf(page, 'Onboarding').click();
    await listOf(page, 'Go further').waitFor();
    const slow = await holdBackCall(page, 'boards.get');

    await page.locator(`#boards a[href="${path}"]`).click();
    await slow.first;
    await tabOf(page, 'Onboarding').click();
    await listOf(page, 'Go further').waitFor();
    const answered = page.waitForResponse(/boards\.get/);
    slow.release();
    await (await answered).finished();
    await page.locator('.calls').getByText('waiting').waitFor({ state: 'detached' });

    expect(await groupsOf(page)).toEqual(['Get started', 'Go further']);
    expect(await tabOf(page, 'Onboarding').getAttribute('aria-current')).toBe('page');
  });

  it('asks to sign in again when a session ends, where the person is, and saves what they did', async () => {
    const { page, api, groups } = await givenBoard();
    await inputOf(page, DOING).fill('Half a sentence');
    const create = await holdBackCall(page, 'cards.create');
    await send(page, { [`Add a card to ${DONE}`]: 'Not lost' });
    await create.first;

    await clientOf('Member').account.signOutEverywhere.mutate({});
    create.release();
    const again = dialog(page, 'Sign in again');
    expect(await again.getByLabel('E-mail address').inputValue()).toBe('member@demo.test');
    await send(again, { Password: 'demo-password' });

    await untilTold(page, 'Added “Not lost”.');
    expect(await cardsIn(page, DONE)).toEqual(['Not lost']);
    expect(await inputOf(page, DOING).inputValue()).toBe('Half a sentence');
    await api.cards.create.mutate({ title: 'Still live', group_id: groups[0]! });
    await cardOf(page, 'Still live').waitFor();
  });

  it('says at once that the connection is lost, and no longer when it is back', async () => {
    const { page, api, groups } = await givenBoard();
    const context = page.context();
    onTestFinished(() => context.setOffline(false));

    await context.setOffline(true);
    await page.getByText('No connection to the service.').waitFor();
    await pressOn(page, 'Rope', 'Alt+ArrowDown');
    await untilTold(page, `Your change was not saved. ${UNREACHABLE}`);
    await api.cards.create.mutate({ title: 'Meanwhile', group_id: groups[0]! });
    await context.setOffline(false);

    await page.getByText('No connection to the service.').waitFor({ state: 'detached' });
    await cardOf(page, 'Meanwhile').waitFor();
    expect(await cardsIn(page, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail', 'Meanwhile']);
  });

  it('says that the connection is back where nothing is sent by itself', async () => {
    const { page, enter } = await givenPage();
    const context = page.context();
    onTestFinished(() => context.setOffline(false));
    await enter('/account', 'Member');

    await context.setOffline(true);
    await page.getByText('No connection to the service.').waitFor();
    await context.setOffline(false);

    await page.getByText('No connection to the service.').waitFor({ state: 'detached' });
  });

  it('429 while a board opens: says so, and goes on when the pause is over', async () => {
    const { path } = await givenBoard();
    // A clock can't be taken away from a page again.
    const page = await newPage();
    await page.clock.install();
    await open(page, '/projects/1/boards/2');
    const data = { code: 'TOO_MANY_REQUESTS', httpStatus: 429, reason: 'over_rate_limit', retryAfterSeconds: 30 };
    await page.route('**/trpc/*boards.get*', (route) => {
      const calls = new URL(route.request().url()).pathname.split(',');
      const json = calls.map(() => ({ error: { json: { message: 'Too many.', code: -32029, data } } }));
      return route.fulfill({ status: 429, json });
    });

    await page.locator(`#boards a[href="${path}"]`).click();
    await page.getByText(/^Too many calls\. The page goes on by itself at \d+:\d+/).waitFor();
    await page.unrouteAll();
    await page.clock.fastForward(31_000);

    await cardOf(page, 'Rope').waitFor();
    await page.getByText('Too many calls.').waitFor({ state: 'detached' });
  });

  it('opens the board again that was opened last', async () => {
    const { page, path } = await givenBoard();

    for (const address of ['/projects/1', '/']) {
      await page.goto(new URL(address, page.url()).href);
      await cardOf(page, 'Rope').waitFor();
      expect(await pathOf(page)).toBe(path);
    }
  });

  it('keeps the chosen project on the pages beside projects', async () => {
    const { page } = await givenBoard({ as: 'Owner', projectId: 2 });
    const name = await page.locator('.picker .name').innerText();
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByRole('heading', { name: 'API keys' }).waitFor();

    await page.reload();

    await expect.poll(() => page.locator('.picker .name').innerText()).toBe(name);
    await page.locator('#boards a').first().waitFor();
  });

  it('the default project of a user is chosen by its name', async () => {
    const { page, enter } = await givenPage();
    await enter('/admin/users/3', 'Admin');

    await page.getByLabel('Default project').selectOption('Harbor Website');
    await button(page, 'Save').click();
    await untilTold(page, 'Member is saved.');

    const { users } = await clientOf('Admin').users.list.query({ id: 3 });
    expect(users).toMatchObject([{ default_project_id: 1 }]);
  });

  it('a new board has the focus in its title, and offers three groups to start with', async () => {
    const { page } = await givenBoard();
    await button(page, 'New board').click();
    expect(await page.evaluate('document.activeElement.name')).toBe('title');
    await send(dialog(page, 'New board'), { Title: 'Convoy' });

    await expect.poll(() => board.focused(page)).toBe('Convoy, edit');
    await button(page, 'Start with To do, In progress and Done').click();

    await expect.poll(() => groupsOf(page)).toEqual([TO_DO, DOING, DONE]);
    await page.reload();
    await expect.poll(() => groupsOf(page)).toEqual([TO_DO, DOING, DONE]);
    expect(await page.getByText('Start with').count()).toBe(0);
  });

  it('three groups and “Add group” fit a screen of 1,440 pixels', async () => {
    const { page } = await givenBoard();
    await page.setViewportSize({ width: 1440, height: 900 });

    const { x, width } = (await button(page, 'Add group').boundingBox())!;
    expect(x + width).toBeLessThanOrEqual(1440);
  });

  it('groups are added, renamed in place, coloured, moved, deleted and brought back', async () => {
    const { page, problems } = await givenBoard();
    const menu = 'Actions for the group To do';
    await send(page, { 'Add a group': 'Later' });
    await untilTold(page, 'Added the group “Later”.');
    await page.locator('.editable', { hasText: 'Later' }).click();
    await send(page, { 'Title of the group': 'Some day' });
    await untilTold(page, 'Saved.');

    await choose(page, menu, 'Colour…');
    await page.getByLabel('Colour', { exact: true }).fill('not a colour');
    await dialog(page, 'Colour of To do').getByText('is not a colour that browsers know').waitFor();
    await page.getByLabel('Pick a colour').fill('#123456');
    expect(await page.getByLabel('Colour', { exact: true }).inputValue()).toBe('#123456');
    expect(await page.getByText('is not a colour').count()).toBe(0);
    await choose(page, 'Use #2e7d32', 'Save');
    const group = page.locator('.group').first();
    await expect.poll(() => group.evaluate((one) => getComputedStyle(one).borderTopColor)).toBe('rgb(46, 125, 50)');
    await choose(page, menu, 'Move right');
    await untilTold(page, 'Moved the group “To do” to place 2 of 4.');

    await choose(page, menu, 'Delete the group…');
    await dialog(page, 'Delete the group?').getByText('“To do” with its 3 cards goes to the trash.').waitFor();
    expect(await page.locator('dialog .choices button').allInnerTexts()).toEqual(['Delete it', 'Cancel']);
    await button(page, 'Cancel').click();
    expect(await groupsOf(page)).toEqual([DOING, TO_DO, DONE, 'Some day']);
    await choose(page, menu, 'Delete the group…');
    await button(page, 'Delete it').click();
    await untilTold(page, 'Deleted the group “To do”.');
    expect(await groupsOf(page)).toEqual([DOING, DONE, 'Some day']);
    await button(page, 'Undo').click();
    await untilTold(page, 'The group “To do” is back.');

    await page.reload();
    await expect.poll(() => groupsOf(page)).toEqual([DOING, TO_DO, DONE, 'Some day']);
    expect(await cardsIn(page, TO_DO)).toEqual(['Rope', 'Anchor', 'Sail']);
    expect(problems).toEqual([]);
  });

  it('boards are made, renamed in place, moved, deleted and brought back', async () => {
    const { page, problems, ...given } = await givenBoard();
    await tabOf(page, given.board.title).waitFor();
    const titles = () => page.locator('#boards .name').allInnerTexts();
    const before = await titles();
    const count = before.length + 1;
    await button(page, 'New board').click();
    await send(dialog(page, 'New board'), { Title: 'Fleet' });
    await page.locator('.editable', { hasText: 'Fleet' }).click();
    const made = await pathOf(page);
    await send(page, { 'Title of the board': 'Armada' });
    await expect.poll(titles).toEqual([...before, 'Armada']);
    await expect.poll(() => page.title()).toBe('Armada · Harbor Website · Deckhand');

    await choose(page, 'Board actions', 'Move up in the list');
    await untilTold(page, `“Armada” is now board ${count - 1} of ${count}.`);
    await page.reload();
    await expect.poll(titles).toEqual(before.toSpliced(-1, 0, 'Armada'));
    await choose(page, 'Board actions', 'Move down in the list');
    await untilTold(page, `“Armada” is now board ${count} of ${count}.`);

    await choose(page, 'Board actions', 'Delete the board…');
    await dialog(page, 'Delete the board?').getByText('“Armada” with its 0 groups and 0 cards').waitFor();
    await button(page, 'Delete it').click();
    await untilTold(page, 'Deleted the board “Armada”.');
    await expect.poll(titles).toEqual(before);
    await page.locator('.card').first().waitFor();
    await button(page, 'Undo').click();
    await untilTold(page, 'The board “Armada” is back.');
    expect([await titles(), await pathOf(page)]).toEqual([[...before, 'Armada'], made]);
    expect(problems).toEqual([]);
  });

  it('what was typed in a dialog or a title stays after Escape and a reload, until it is dropped', async () => {
    const { page, board: shown } = await givenBoard();
    const openDialog = () => button(page, 'New board').click();
    const title = dialog(page, 'New board').getByLabel('Title');
    await openDialog();
    await title.fill('Flee');
    await page.keyboard.press('Escape');
    await title.waitFor({ state: 'detached' });
    await page.locator('.editable', { hasText: shown.title }).click();
    await page.getByLabel('Title of the board').fill('Voyage home');
    await page.keyboard.press('Escape');
    await page.locator('.board-head').getByText('unsaved draft').waitFor();

    await page.reload();
    await page.locator('.editable', { hasText: shown.title }).click();
    expect(await page.getByLabel('Title of the board').inputValue()).toBe('Voyage home');
    await page.keyboard.press('Escape');
    await button(page, 'Drop the draft').click();
    await page.locator('.board-head').getByText('unsaved draft').waitFor({ state: 'detached' });
    await openDialog();
    expect(await title.inputValue()).toBe('Flee');
    await button(page, 'Cancel').click();
    await openDialog();

    expect(await title.inputValue()).toBe('');
    expect(await page.evaluate<string>('JSON.stringify(localStorage)')).not.toContain('Flee');
  });

  it('“Move to…” moves a card to a place, a group, another board, and out of its group', async () => {
    const { page, api, problems } = await givenBoard();
    const { board: quay } = await api.boards.create.mutate({ title: 'Quay' });
    await api.groups.create.mutate({ board_id: quay.id, title: 'Landed' });
    await tabOf(page, 'Quay').waitFor();
    const move = async (title: string, choices: Record<string, string>, place?: string) => {
      await choose(page, `Actions for ${title}`, 'Move to…');
      const asked = dialog(page, `Move “${title}”`);
      for (const [label, choice] of Object.entries(choices)) await asked.getByLabel(label).selectOption(choice);
      if (place) await asked.getByLabel('Place, from 1').fill(place);
      await asked.getByRole('button', { name: 'Move' }).click();
    };

    await move('Sail', { Place: 'At the top' });
    await untilMoved(page, 'Sail', TO_DO, '1 of 3');
    await move('Rope', { Place: 'At a place that you choose' }, '3');
    await untilMoved(page, 'Rope', TO_DO, '3 of 3');
    await move('Anchor', { Group: DONE });
    await untilMoved(page, 'Anchor', DONE, '1 of 1');
    expect(await cardsIn(page, TO_DO)).toEqual(['Sail', 'Rope']);
    await move('Rope', { Board: 'Quay', Group: 'Landed' });
    await untilTold(page, 'Moved “Rope” to Landed on the board Quay.');
    await cardOf(page, 'Rope').waitFor({ state: 'detached' });

    // A last column has the cards in no group, which can be moved back.
    await move('Anchor', { Group: 'In no group' });
    await listOf(page, 'In no group').getByText('Anchor').waitFor();
    expect((await groupsOf(page)).at(-1)).toBe('In no group');
    await pressOn(page, 'Anchor', 'Alt+ArrowLeft');
    await untilMoved(page, 'Anchor', DONE, '1 of 1');
    expect(problems).toEqual([]);
  });

  it('1,000 cards can be moved, found and opened; of a board that is too large, it says how many it shows', async () => {
    const { page, api, groups, problems, path } = await givenBoard({ cards: many(1000), as: 'Outsider', projectId: 3 });
    await expect.poll(() => countsOf(page)).toEqual(['1,000 cards', '1,000', '0', '0']);
    await pressOn(page, 'Card 1000', 'Alt+ArrowRight');
    await untilMoved(page, 'Card 1000', DOING, '1 of 1');
    await page.getByLabel('Find cards').fill('Card 77');
    await expect.poll(() => cardsIn(page, TO_DO)).toHaveLength(19);
    await cardOf(page, 'Card 777').click();
    await panelOf(page, 'Card 777').waitFor();
    expect(problems).toEqual([]);

    await api.cards.createMany.mutate({ cards: many(60).map((title) => ({ title, group_id: groups[2]! })) });
    await query(db(), sql`update cards set description = repeat(chr(1), 65536) where group_id = ${groups[2]!}`);
    await open(page, path, 'Outsider');
    await expect.poll(() => countsOf(page)).toEqual(['1,000 of 1,060 cards', '999+', '1+', '0+']);
    await pressOn(page, 'Card 2', 'Alt+ArrowUp');
    await untilTold(page, 'Moved “Card 2” to To do, place 1 of 999.');
    await page.reload();
    await expect.poll(async () => (await cardsIn(page, TO_DO)).slice(0, 3)).toEqual(['Card 2', 'Card 1', 'Card 3']);
  });

  it('700 cards in no group are counted', async () => {
    const { page, api } = await givenBoard({ as: 'Owner', projectId: 2 });
    await api.cards.createMany.mutate({ cards: many(700).map((title) => ({ title })) });

    await page.reload();

    await expect.poll(() => countsOf(page)).toEqual(['3 cards', '3', '0', '0', '700']);
    expect(await cardsIn(page, 'In no group')).toEqual(many(700));
  });

  it('leads from the start page to a board with one click, and fits the screen of a phone', async () => {
    const { page, problems } = await givenStart();
    const brand = page.getByRole('link', { name: 'Deckhand', exact: true });
    const fits = async () => {
      for (const width of [PHONE.width, 320]) {
        await page.setViewportSize({ ...PHONE, width });
        expect(await isWiderThanScreen(page)).toBe(false);
        expect((await brand.boundingBox())!.width).toBeGreaterThan(24);
      }
    };

    await fits();
    await button(page, 'Open the demo board').click();
    await page.locator('.board .card').first().waitFor();
    await fits();
    await button(page, 'Menu').click();
    await tabOf(page, 'Onboarding').click();
    await cardOf(page, 'Look around').waitFor();
    expect(await page.locator('#sidebar').isVisible()).toBe(false);
    expect(problems).toEqual([]);
  });

  it('a finger moves a card by its handle to a column off the screen, and scrolls the columns beside it', async () => {
    const given = await givenBoard();
    const page = await newPage({ viewport: PHONE, hasTouch: true });
    await open(page, given.path);
    const devtools = await page.context().newCDPSession(page);
    // The touches of playwright are taps only.
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...touchPoints: { x: number; y: number }[]) =>
      devtools.send('Input.dispatchTouchEvent', { type, touchPoints });
    const scrolled = () => page.locator('.board').evaluate(({ scrollLeft }) => scrollLeft);

    const { x, y, width } = (await cardOf(page, 'Rope').locator('.handle').boundingBox())!;
    await touch('touchStart', { x: x + width / 2, y: y + 5 });
    await touch('touchMove', { x: PHONE.width - 4, y: y + 5 });
    await expect.poll(() => cardsIn(page, DONE), { timeout: 30_000 }).toEqual(['Rope']);
    await touch('touchEnd');
    await untilMoved(page, 'Rope', DONE, '1 of 1');
    await page.locator('.board').evaluate((columns) => columns.scrollTo(0, 0));
    const title = (await cardOf(page, 'Anchor').locator('.title').boundingBox())!;
    await touch('touchStart', { x: 150, y: title.y + 5 });
    for (let x = 130; x >= 30; x -= 20) await touch('touchMove', { x, y: title.y + 5 });
    await touch('touchEnd');

    await expect.poll(scrolled, { timeout: 30_000 }).toBeGreaterThan(0);
    expect(await cardsIn(page, TO_DO)).toEqual(['Anchor', 'Sail']);
  });
});
