import { beforeAll, describe, expect, it } from 'vitest';
import type { DemoName } from '../../server/database/seed/demoUsers.ts';
import { axeFindings, LOOKS, showIn } from '../harness/axe.ts';
import { hasBrowser } from '../harness/browser.ts';
import { APP, pressEverything } from '../harness/controls.ts';
import { button, dialog, givenRollout, pageOfSuite } from '../harness/page.ts';
import { isNight } from '../harness/sample.ts';
import { testService } from '../harness/service.ts';

const TITLES = { long: 'Donaudampfschiff'.repeat(16).slice(0, 255), hebrew: 'מפת הנמל' };
const PROJECT_PAGES = ['due', 'tags', 'trash', 'members', 'templates', 'webhooks', 'audit', 'plan', 'nothing'];

/** By user: pages, and what is opened on them. */
const VIEWS = Object.entries({
  Owner: `${PROJECT_PAGES.join(', ')}, webhook, webhooks > New webhook, account, keys, keys > New key, long, long > Move to,
    hebrew > History, board, board > Actions for, board > Account of, board > New board, board > Harbor Website`,
  Viewer: 'long',
  Admin: 'members, users, user, rollouts, rollout, rollout > Abort',
  nobody: 'start, start > Sign in, start without demo data',
}).flatMap(([name, views]) => views.split(/,\s+/).map((view) => [name, view] as [DemoName | 'nobody', string]));

/** What the page links for each role, at least. */
const BOARD = '/projects/#/boards/#';
const PAGES_OF = {
  Viewer: [BOARD, '/projects/#/due'],
  Member: [BOARD, '/projects/#/tags'],
  Owner: [BOARD, '/projects/#/members', '/projects/#/webhooks'],
  Admin: ['/admin/users', '/admin/rollouts'],
};

describe.skipIf(!hasBrowser)('the pages', () => {
  const { givenPage, clientOf, url } = pageOfSuite();
  const addresses: Record<string, string> = {
    ...Object.fromEntries(PROJECT_PAGES.map((page) => [page, `/projects/1/${page}`])),
    ...{ account: '/account', keys: '/account/keys', users: '/admin/users', rollouts: '/admin/rollouts' },
  };

  /** Something to see on each page: rows whose names are one long word, or are written from right to left. */
  beforeAll(async () => {
    const [admin, owner] = [clientOf('Admin').as({ projectId: 1 }), clientOf('Owner')];
    for (const [name, title] of Object.entries(TITLES)) {
      const user = { name: title, email: `${name}@looks.test`, password: 'a-password' };
      const { id: owner_id } = (await admin.users.create.mutate(user)).user;
      await admin.members.add.mutate({ email: user.email, role: 'member' });
      const { board } = await admin.boards.create.mutate({ title, description: title });
      const { group } = await admin.groups.create.mutate({ board_id: board.id, title });
      const { tag } = await admin.tags.create.mutate({ name: title, color: 'teal' });
      const values = { title, group_id: group.id, owner_id, tag_id: tag.id, description: title, due_date: new Date() };
      const [{ card }, deleted] = [await admin.cards.create.mutate(values), await admin.cards.create.mutate(values)];
      await admin.cards.delete.mutate({ id: deleted.card.id });
      await admin.comments.create.mutate({ card_id: card.id, comment: title });
      await owner.keys.create.mutate({ name: title, scopes: ['boards:read'] });
      const path = `/projects/1/boards/${board.id}`;
      Object.assign(addresses, { board: path, [name]: `${path}/cards/${card.id}`, user: `/admin/users/${owner_id}` });
    }
    const { webhook } = await admin.webhooks.create.mutate({ url: `https://example.com/${TITLES.long}` });
    await admin.members.invite.mutate({ email: `${TITLES.long.slice(0, 60)}@looks.test`, role: 'viewer' });
    for (const name of ['owner', 'member', 'viewer'])
      await clientOf('Outsider').members.invite.mutate({ email: `${name}@demo.test`, role: 'viewer' });
    addresses.webhook = `/projects/1/webhooks/${webhook.id}`;
    addresses.rollout = `/admin/rollouts/${await givenRollout(admin, TITLES.long)}`;
  });

  it.each(VIEWS)('%s: %s fits in light and dark, and axe finds nothing', async (name, view) => {
    const [place = '', opened] = view.split(' > ');
    const given = await givenPage(place.endsWith('without demo data') ? (await testService()).url : undefined);
    const { page, enter, problems, untilQuiet } = given;
    await enter(addresses[place] ?? '/', name === 'nobody' ? undefined : name);
    const buttons = page.locator(`:is(button, summary):is([aria-label^="${opened}"], :has-text("${opened}"))`);
    if (opened) await buttons.first().click();
    await untilQuiet();

    for (const look of LOOKS.slice(0, 2)) {
      await showIn(page, look);
      expect([...(await axeFindings(page)), ...(await page.evaluate(findMisfits))]).toEqual([]);
    }
    expect(problems).toEqual([]);
  });

  it('a card is opened and moved, and a dialog is used and left, by keyboard alone', async () => {
    const { page, enter, problems } = await givenPage();
    await enter('/');
    const focus = () => page.evaluate(readFocus);
    const untilFocused = (name: string) => expect.poll(focus).toContain(name);
    const untilTold = (text: string) => page.locator('.messages').getByText(text).waitFor();
    const type = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    /** Goes on with Tab, and presses Enter there; whatever has the focus on the way can be seen. */
    const enterAt = async (name: string) => {
      const passed: string[] = [];
      while (!passed.at(-1)?.startsWith(name) && passed.length < 80) {
        await type('Tab');
        passed.push(await focus());
      }
      expect(passed.at(-1), passed.join()).toContain(name);
      expect(passed.filter((one) => one.startsWith('unseen'))).toEqual([]);
      await type('Enter');
      return passed.length;
    };

    await enterAt('Skip to the content');
    expect(await enterAt('Open the demo board')).toBe(1);
    await page.getByText('Look around').waitFor();
    await enterAt('Launch plan');
    await page.getByText('Collect keywords').waitFor();
    await enterAt('Collect keywords');
    await page.getByRole('complementary', { name: 'Card Collect keywords' }).getByLabel('Title').waitFor();
    await type('Tab', 'Escape');
    await untilFocused('Collect keywords');
    await type('Alt+ArrowRight');
    await untilTold('Moved “Collect keywords” to In progress');
    await untilFocused('Collect keywords');
    await type('Alt+ArrowLeft');
    await untilTold('Moved “Collect keywords” to To do');

    await enterAt('Actions for Collect keywords');
    await untilFocused('Move to…');
    await type('ArrowDown', 'ArrowDown', 'Enter');
    await dialog(page, 'Move “Collect keywords”').waitFor();
    for (let stops = 0; stops < 12; stops++) {
      await type('Tab');
      expect(await page.evaluate('document.activeElement.matches("body, dialog *")')).toBe(true);
    }
    await type('Escape');
    await untilFocused('Actions for Collect keywords');
    expect(problems).toEqual([]);
  });

  const ROLES = Object.keys(PAGES_OF) as (keyof typeof PAGES_OF)[];

  it.each(ROLES)('%s can open each page that the page links, and sign out', async (name) => {
    const { page, problems, refusals, enter, open } = await givenPage();
    await enter('/', name);

    const shapes = new Map([['/', '/']]);
    for (const path of shapes.values()) {
      await open(path);
      const links = await page
        .locator('a:visible')
        .evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
      for (const link of links.filter((one) => APP.test(one))) {
        // The pages of two boards, or of two users, are alike.
        const shape = link.replaceAll(/\/\d+/g, '/#');
        if (!shapes.has(shape)) shapes.set(shape, link);
      }
    }
    await page.getByRole('button', { name: /^Account of/ }).click();
    await button(page, 'Sign out').click();

    expect({ problems, refusals }).toEqual({ problems: [], refusals: [] });
    expect([...shapes.keys()]).toEqual(expect.arrayContaining(PAGES_OF[name]));
    await button(page, 'Sign in').waitFor();
  });

  // Takes minutes for each role.
  it.runIf(isNight).each(ROLES)('each control does something that %s may do', { timeout: 600_000 }, async (name) => {
    const given = await givenPage();
    const { page, problems, enter, open } = given;
    await enter('/', name);

    const { pages, controls, wrong, links } = await pressEverything(given);
    await open('/');
    await page.getByRole('button', { name: /^Account of/ }).click();
    await button(page, 'Sign out').click();

    console.log(`${name}: pressed ${controls.size} controls on ${pages.size} pages.`);
    expect([...wrong]).toEqual([]);
    await button(page, 'Sign in').waitFor();
    expect(problems.filter((text) => !text.startsWith('Failed to load resource'))).toEqual([]);
    for (const link of links) expect((await page.request.get(url() + link)).status(), link).toBe(200);
  });
});

/** What is wider than its place, and text from right to left that is shown from left to right. */
function findMisfits(): string[] {
  const texts = (one: Element) => [...one.childNodes].map((node) => (node instanceof Text ? node.data : '')).join('');
  return [...document.querySelectorAll<HTMLInputElement>('html, body *')].flatMap((one) => {
    const { left, right, width } = one.getBoundingClientRect();
    const isOutside = one.matches('.menu-list, dialog, .messages, .panel') && (left < 0 || right > innerWidth);
    const isPlace = one.matches('html, dialog, .panel, .sidebar, .menu-list, .bar, .card');
    const isHebrew = /^\s*[\u0590-\u05ff]/.test(one.matches('input, textarea') ? one.value : texts(one));
    const isText = isHebrew && width > 0 && !one.closest('option, .calls, .initials, .unseen');
    const isMisfit =
      isOutside ||
      (isPlace && one.scrollWidth > one.clientWidth) ||
      (isText && getComputedStyle(one).direction === 'ltr');
    return isMisfit ? `does not fit: ${one.outerHTML.slice(0, 200)}` : [];
  });
}

/** The name of what has the focus; says so if that can't be seen. */
function readFocus(): string {
  const one = document.activeElement as HTMLInputElement;
  const name = one.ariaLabel ?? one.labels?.[0]?.textContent ?? one.textContent.trim();
  const isMarked = [undefined, '::after'].some((part) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(one, part);
    return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0;
  });
  const { top, bottom, left, right } = one.getBoundingClientRect();
  const isOnScreen = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
  return one.matches('body, #content') || (isOnScreen && isMarked) ? name : `unseen: ${name}`;
}
