import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { createClient } from '../../client/client.ts';
import { hasBrowser, isWiderThanScreen, PHONE } from '../harness/browser.ts';
import { testService } from '../harness/service.ts';
import * as board from '../harness/startPage.ts';

const { cardsIn, holdBackCall, inputOf, openBoard, signIn, tabOf, untilTold } = board;

describe.skipIf(!hasBrowser)('the start page', () => {
  const givenStart = board.startPageForSuite();
  const callsOf = (page: Page, procedure: string) => page.locator('#calls').getByText(procedure).count();
  const memberButton = (page: Page) => page.getByRole('button', { name: 'Member', exact: true });

  it('shows a board after one click and the calls that it made, and nothing of them after signing out', async () => {
    const { page, problems } = await givenStart();

    await signIn(page, 'Member');

    expect(await page.locator('.group h3').allInnerTexts()).toEqual(['Get started', 'Go further']);
    const calls = await page.locator('#calls pre').allInnerTexts();
    expect(calls).toContain('await client.account.whoAmI.query();');
    expect(calls).toContain('await client.as({ projectId: 1 }).boards.list.query();');
    expect(await page.locator('#calls').getByRole('button', { name: 'Copy' }).count()).toBe(calls.length);

    await page.getByRole('button', { name: 'Sign out' }).click();
    await memberButton(page).waitFor();
    expect(await page.locator('.card, #calls li').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('adds a card, moves it with mouse and keyboard, and deletes it only if that is confirmed', async () => {
    const { page, problems } = await givenStart();
    await signIn(page, 'Member');
    await openBoard(page, 'Launch plan');
    const [from, to] = (await page.locator('.group h3').allInnerTexts()) as [string, string];
    const card = page.locator('.card', { hasText: 'Dragged' });

    await board.addCard(page, from, 'Dragged');
    expect((await cardsIn(page, from)).at(-1)).toBe('Dragged');

    const first = page.getByRole('list', { name: to }).locator('.card').first();
    await card.dragTo(first, { targetPosition: { x: 60, y: 4 } });
    await untilTold(page, 'Moved “Dragged”.');
    expect((await cardsIn(page, to))[0]).toBe('Dragged');

    await card.press('Alt+ArrowDown');
    await page.locator('#calls').getByText('position: 2').waitFor();
    expect((await cardsIn(page, to))[1]).toBe('Dragged');
    await page.reload();
    await page.locator('.card').first().waitFor();
    await openBoard(page, 'Launch plan');
    expect((await cardsIn(page, to))[1]).toBe('Dragged');

    page.once('dialog', (dialog) => dialog.dismiss());
    await page.getByRole('button', { name: 'Delete Dragged' }).click();
    expect(await callsOf(page, 'cards.delete')).toBe(0);
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Delete Dragged' }).click();
    await untilTold(page, 'Deleted “Dragged”.');
    expect(await cardsIn(page, to)).not.toContain('Dragged');
    expect(problems).toEqual([]);
  });

  it('shows cards that are in no group in a last column, from where they can be moved', async () => {
    const { page, problems } = await givenStart();
    await signIn(page, 'Member');
    const member = { email: 'member@demo.test', password: 'demo-password' };
    await createClient({ url: new URL(page.url()).origin, signIn: member }).cards.create.mutate({ title: 'Loose' });
    await openBoard(page, 'Launch plan');
    expect((await page.locator('.group h3').allInnerTexts()).at(-1)).toBe('In no group');
    const before = await page.locator('#boards [aria-current=true]').innerText();

    await page.locator('.card', { hasText: 'Loose' }).press('Alt+ArrowLeft');
    await untilTold(page, 'Moved “Loose”.');

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
    expect(await callsOf(page, 'cards.move')).toBe(0);
  });

  it('tells a viewer why a card is not added, and shows the board as it is', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Viewer');
    const before = await cardsIn(page, 'Get started');

    await inputOf(page, 'Get started').fill('Refused');
    await page.keyboard.press('Enter');

    await untilTold(page, VIEW_ONLY);
    expect(await page.locator('#calls .failure').innerText()).toMatch(/^403 role_missing, \d+ ms$/);
    await page.locator('#calls').getByText('boards.get').nth(1).waitFor();
    expect(await cardsIn(page, 'Get started')).toEqual(before);
    expect(await inputOf(page, 'Get started').inputValue()).toBe('Refused');
    expect(await page.locator('#message').innerText()).toBe(VIEW_ONLY);
  });

  it('shows a superadmin what a sync would do, and keeps the project if another can not be opened', async () => {
    const { page, problems } = await givenStart();
    await signIn(page, 'Admin');

    await page.getByRole('button', { name: 'Preview a sync' }).first().click();
    await page.getByRole('row', { name: /Harbor Website/ }).waitFor();
    const headers = await page.getByRole('columnheader').allInnerTexts();
    expect(headers.join()).toBe('Project,Outcome,Boards,Groups,Cards');
    expect(problems).toEqual([]);

    const projects = page.getByRole('combobox', { name: 'Project' });
    const before = await projects.inputValue();
    await page.route('**/trpc/*boards.list*', (route) => route.abort());
    await projects.selectOption(await projects.locator('option:not(:checked)').first().getAttribute('value'));
    await untilTold(page, "Can't reach Deckhand.");
    expect(await projects.inputValue()).toBe(before);
  });

  it('shows the board of the last click, not of the last answer', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Member');
    const slow = await holdBackCall(page, 'boards.get');

    await tabOf(page, 'Launch plan').click();
    await slow.first;
    await openBoard(page, 'Onboarding');
    const answered = page.waitForResponse(/boards\.get/);
    slow.release();
    await answered;
    await page.locator('#calls').getByText('waiting').waitFor({ state: 'detached' });

    expect(await page.locator('.group h3').allInnerTexts()).toEqual(['Get started', 'Go further']);
    expect(await tabOf(page, 'Onboarding').getAttribute('aria-current')).toBe('true');
  });

  it('sends and shows nothing for the next user after signing out', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Member');
    const move = await holdBackCall(page, 'cards.move');
    const cardIn = (group: string) => page.getByRole('list', { name: group }).locator('.card').first();
    await cardIn('Get started').press('Alt+ArrowDown');
    await move.first;
    await cardIn('Get started').press('Alt+ArrowRight');
    await cardIn('Go further').press('Alt+ArrowLeft');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, 'Viewer');
    const answered = page.waitForResponse(/cards\.move/);
    move.release();
    await answered;
    await openBoard(page, 'Launch plan');

    expect(move.count()).toBe(1);
    expect(await page.locator('#message').innerText()).toBe('');
  });

  it('says why a sign-in failed, and why a session ended, in one line', async () => {
    const { page } = await givenStart();
    const notSignedIn = page.locator('#not-signed-in');
    await page.route('**/v1/authenticate', (route) => route.abort());
    for (let press = 0; press < 2; press++) {
      await memberButton(page).click();
      await page.locator('#demo-users:not([aria-busy])').waitFor();
      expect(await notSignedIn.innerText()).toBe("Can't reach Deckhand.");
    }
    await page.unrouteAll();

    await signIn(page, 'Member');
    await page.evaluate(`sessionStorage.setItem('deckhand.session', '{"token":"ended","name":"Member"}')`);
    await tabOf(page, 'Launch plan').click();

    await memberButton(page).waitFor();
    await notSignedIn.filter({ hasText: /token/ }).waitFor();
    expect(await notSignedIn.getAttribute('class')).toBe('failure');
  });

  it('offers nobody where there is no demo data', async () => {
    const { page, problems } = await givenStart({ url: (await testService()).url });

    await page.locator('#session').getByRole('button', { name: 'Sign in' }).waitFor();

    expect(await page.locator('#demo-users').innerText()).toBe('');
    expect(problems).toEqual([]);
  });

  it('has overdue dates and failures that are red and readable, in light and dark', async () => {
    const { page } = await givenStart();
    await page.locator('#session').getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('E-mail address').fill('member@demo.test');
    await page.getByLabel('Password').fill('wrong');
    await page.getByLabel('Password').press('Enter');
    await page.getByRole('alert').getByText('password').waitFor();
    const looks = async (selector: string) => {
      const found = [];
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        found.push(await lookOf(page, selector));
      }
      await page.emulateMedia({ colorScheme: null });
      return found;
    };

    const inDialog = await looks('dialog .failure');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await signIn(page, 'Member');
    await openBoard(page, 'Launch plan');
    const [onCard, plain] = [await looks('.card .failure'), await looks('.card .hint')];

    for (const failures of [inDialog, onCard]) {
      expect(failures.map(({ color }) => color)).toEqual(['rgb(179, 38, 30)', 'rgb(255, 156, 148)']);
      expect(Math.min(...failures.map(({ contrast }) => contrast))).toBeGreaterThan(4.5);
    }
    expect(plain.map(({ color }) => color)).not.toContain(onCard[0]!.color);
  });

  describe('on a phone', () => {
    it('fits the screen and links to itself by its name, like the other pages', async () => {
      const { page, problems } = await givenStart({ size: PHONE });
      await signIn(page, 'Member');
      const touchAction = 'getComputedStyle(document.querySelector(".handle")).touchAction';
      expect(await page.evaluate(touchAction)).toBe('none');

      for (const path of ['/', '/docs', '/docs/guides']) {
        await page.goto(new URL(path, page.url()).href);
        const brand = page.getByRole('link', { name: 'Deckhand', exact: true });
        expect((await brand.boundingBox())!.width, path).toBeGreaterThan(24);
        for (const size of [PHONE, { width: 320, height: 700 }, PHONE]) {
          await page.setViewportSize(size);
          expect(await isWiderThanScreen(page), path).toBe(false);
        }
        await brand.click();
        expect(new URL(page.url()).pathname).toBe('/');
      }
      expect(problems).toEqual([]);
    });

    const givenFinger = async () => {
      const { page } = await givenStart({ size: PHONE });
      await signIn(page, 'Member');
      await openBoard(page, 'Launch plan');
      return { page, finger: await fingerOn(page) };
    };

    it('a finger on the handle moves a card to a column off the screen', async () => {
      const { page, finger } = await givenFinger();
      const [title] = await cardsIn(page, 'To do');

      await finger.down(page.locator('.card', { hasText: title! }).locator('.handle'));
      await finger.moveTo(PHONE.width - 4);
      await expect.poll(() => unseenRightOf(page), { timeout: 20_000 }).toBeLessThan(1);
      await finger.up();

      await untilTold(page, `Moved “${title}”.`);
      expect(await cardsIn(page, 'Done')).toContain(title);
    });

    it('a finger beside the handle scrolls the columns, and moves no card', async () => {
      const { page, finger } = await givenFinger();
      const before = await unseenRightOf(page);

      await finger.down(page.locator('.card .title').first());
      for (let x = 150; x >= 30; x -= 20) await finger.moveTo(x);
      await finger.up();

      await expect.poll(() => unseenRightOf(page), { timeout: 20_000 }).toBeLessThan(before);
      expect(await callsOf(page, 'cards.move')).toBe(0);
    });
  });
});

const VIEW_ONLY = 'You can view this project but not change it.';

/** How many pixels of the columns are off the screen on the right. */
const unseenRightOf = (page: Page) =>
  page.locator('.board').evaluate(({ scrollLeft, scrollWidth, clientWidth }) => scrollWidth - clientWidth - scrollLeft);

/** The colour of a text, and its contrast to what is behind it (WCAG). */
const lookOf = (page: Page, selector: string) =>
  page
    .locator(selector)
    .first()
    .evaluate((text) => {
      const luminance = (color: string) => {
        const [red = 0, green = 0, blue = 0] = color.match(/[\d.]+/g)!.map((part) => {
          const share = Number(part) / 255;
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
      };
      let behind: Element | null = text;
      while (behind && /, 0\)$/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
      const { color } = getComputedStyle(text);
      const [dark, light] = [color, getComputedStyle(behind!).backgroundColor]
        .map(luminance)
        .toSorted((one, other) => one - other) as [number, number];
      return { color, contrast: (light + 0.05) / (dark + 0.05) };
    });

/** A finger on the screen: the touches of playwright are taps only. */
async function fingerOn(page: Page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Emulation.setTouchEmulationEnabled', { enabled: true });
  let y = 0;
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', touchPoints: { x: number; y: number }[]) =>
    devtools.send('Input.dispatchTouchEvent', { type, touchPoints });
  return {
    down: async (target: ReturnType<Page['locator']>) => {
      const box = (await target.boundingBox())!;
      y = box.y + box.height / 2;
      await touch('touchStart', [{ x: box.x + box.width / 2, y }]);
    },
    moveTo: (x: number) => touch('touchMove', [{ x, y }]),
    up: () => touch('touchEnd', []),
  };
}
