import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hasBrowser, isWiderThanScreen, PHONE } from '../harness/browser.ts';
import {
  cardsIn,
  holdBackCall,
  inputOf,
  openBoard,
  signIn,
  startPageForSuite,
  tabOf,
  untilTold,
} from '../harness/startPage.ts';

describe.skipIf(!hasBrowser)('the start page', () => {
  const givenStart = startPageForSuite();

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

  it('keeps the project in the list if another one can not be opened', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Admin');
    const projects = page.getByRole('combobox', { name: 'Project' });
    const before = await projects.inputValue();
    const other = await projects.locator('option:not(:checked)').first().getAttribute('value');
    await page.route('**/trpc/*boards.list*', (route) => route.abort());

    await projects.selectOption(other);

    await untilTold(page, "Can't reach Deckhand.");
    expect(await projects.inputValue()).toBe(before);
  });

  it('sends and shows nothing for the next user after signing out', async () => {
    const { page } = await givenStart();
    await signIn(page, 'Member');
    const move = await holdBackCall(page, 'cards.move');
    const card = page.getByRole('list', { name: 'Get started' }).locator('.card').first();
    await card.press('Alt+ArrowDown');
    await move.first;
    await card.press('Alt+ArrowRight');
    await page.getByRole('list', { name: 'Go further' }).locator('.card').first().press('Alt+ArrowLeft');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, 'Viewer');
    const answered = page.waitForResponse(/cards\.move/);
    move.release();
    await answered;
    await openBoard(page, 'Launch plan');

    expect(move.count()).toBe(1);
    expect(await page.locator('#message').innerText()).toBe('');
  });

  it('says why a session ended, and why a sign-in failed, in one line', async () => {
    const { page } = await givenStart();
    const notSignedIn = page.locator('#not-signed-in');
    await page.route('**/v1/authenticate', (route) => route.abort());
    for (let press = 0; press < 2; press++) {
      await page.getByRole('button', { name: 'Member', exact: true }).click();
      await page.locator('#demo-users:not([aria-busy])').waitFor();
      expect(await notSignedIn.innerText()).toBe("Can't reach Deckhand.");
    }
    await page.unrouteAll();

    await signIn(page, 'Member');
    await page.evaluate(`sessionStorage.setItem('deckhand.session', '{"token":"ended","name":"Member"}')`);
    await tabOf(page, 'Launch plan').click();

    await notSignedIn.filter({ hasText: /token/ }).waitFor();
    expect(await notSignedIn.getAttribute('class')).toBe('failure');
  });

  it.each(['light', 'dark'] as const)('overdue dates and failures are red and readable (%s)', async (colorScheme) => {
    const { page } = await givenStart();
    await page.emulateMedia({ colorScheme });
    await page.locator('#session').getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('E-mail address').fill('member@demo.test');
    await page.getByLabel('Password').fill('wrong');
    await page.getByLabel('Password').press('Enter');
    await page.getByRole('alert').getByText('password').waitFor();
    const failures = [await lookOf(page, 'dialog .failure')];
    await page.getByRole('button', { name: 'Cancel' }).click();
    await signIn(page, 'Member');
    await openBoard(page, 'Launch plan');
    failures.push(await lookOf(page, '.card .failure'));
    const plain = await lookOf(page, '.card .hint');
    await page.emulateMedia({ colorScheme: null });

    for (const { color, contrast } of failures) {
      expect(color).toBe(colorScheme === 'light' ? 'rgb(179, 38, 30)' : 'rgb(255, 156, 148)');
      expect(contrast).toBeGreaterThan(4.5);
    }
    expect(plain.color).not.toBe(failures[0]!.color);
  });

  describe('on a phone', () => {
    it('links to itself by its name, like the other pages', async () => {
      const { page } = await givenStart({ size: PHONE });
      await signIn(page, 'Member');

      for (const path of ['/', '/docs', '/docs/guides']) {
        await page.goto(new URL(path, page.url()).href);
        const brand = page.getByRole('link', { name: 'Deckhand', exact: true });
        expect((await brand.boundingBox())!.width, path).toBeGreaterThan(24);
        await page.setViewportSize({ width: 320, height: 700 });
        expect(await isWiderThanScreen(page), path).toBe(false);
        await page.setViewportSize(PHONE);
        await brand.click();
        expect(new URL(page.url()).pathname).toBe('/');
      }
    });

    it('a finger on the handle moves a card to a column off the screen', async () => {
      const { page } = await givenStart({ size: PHONE });
      await signIn(page, 'Member');
      await openBoard(page, 'Launch plan');
      const [title] = await cardsIn(page, 'To do');
      const finger = await fingerOn(page);

      await finger.down(page.locator('.card', { hasText: title! }).locator('.handle'));
      await finger.moveTo(PHONE.width - 4);
      await expect.poll(() => unseenRightOf(page), { timeout: 20_000 }).toBeLessThan(1);
      await finger.up();

      await untilTold(page, `Moved “${title}”.`);
      expect(await cardsIn(page, 'Done')).toContain(title);
    });

    it('a finger beside the handle scrolls the columns, and moves no card', async () => {
      const { page } = await givenStart({ size: PHONE });
      await signIn(page, 'Member');
      await openBoard(page, 'Launch plan');
      const before = await unseenRightOf(page);
      const finger = await fingerOn(page);

      await finger.down(page.locator('.card .title').first());
      for (let x = 150; x >= 30; x -= 20) await finger.moveTo(x);
      await finger.up();

      await expect.poll(() => unseenRightOf(page), { timeout: 20_000 }).toBeLessThan(before);
      expect(await page.locator('#calls').getByText('cards.move').count()).toBe(0);
      expect(await inputOf(page, 'To do').inputValue()).toBe('');
    });
  });
});

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
