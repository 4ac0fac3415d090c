import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, vi } from 'vitest';
import { type Client, type ClientOptions, createClient } from '../../client/client.ts';
import { DEMO_USER, type DemoName, emailOf } from '../../server/database/seed/demoUsers.ts';
import { DESKTOP, holdBack, pageForSuite } from './browser.ts';
import { type DemoNode, givenDemoNode } from './demo.ts';

export const [TO_DO, DOING, DONE] = ['To do', 'In progress', 'Done'] as const;
/** Ends at once when its condition holds; a busy machine may need long. */
const LONGEST_WAIT = { interval: 20, timeout: 60_000 };

type Settings = Record<string, string>;
type WantedBoard = { as?: DemoName; cards?: string[]; projectId?: number };

/** The page of a whole node with demo data. All tests of a suite share its node and its window. */
export function pageOfSuite(settings: () => Settings | Promise<Settings> = () => ({})) {
  const openPage = pageForSuite();
  const sessions = new Map<DemoName, string>();
  let node: DemoNode;
  let admin: Client;
  let boards = 0;
  beforeAll(async () => {
    node = await givenDemoNode(await settings());
    admin = clientOf('Admin');
  });
  afterAll(() => node.close());

  /** The service, as somebody else uses it. */
  const clientOf = (name: DemoName, more: Partial<ClientOptions> = {}) =>
    createClient({ url: node.url, signIn: credentialsOf(name), ...more });

  /** As the page stores it. Kept while it works, since signing in is expensive. */
  const sessionOf = async (name: DemoName): Promise<string> => {
    const known = sessions.get(name);
    const isKnown = known && createClient({ url: node.url, token: JSON.parse(known).token }).account.whoAmI.query();
    if (isKnown && (await isKnown.catch(() => undefined))) return known;
    const { token, email } = await createClient({ url: node.url }).auth.authenticate.mutate(credentialsOf(name));
    sessions.set(name, JSON.stringify({ token, name: email, isSignedIn: true }));
    return sessions.get(name)!;
  };

  /** Opens an address as somebody who has signed in at an earlier visit, or as a new visitor. */
  const goTo = async (page: Page, path: string, name?: DemoName) => {
    const stored = name ? { 'deckhand.session': await sessionOf(name) } : {};
    const forget = 'localStorage.clear(); sessionStorage.clear();';
    const prepared = await page.addInitScript(`${forget} Object.assign(localStorage, ${JSON.stringify(stored)})`);
    await page.goto(new URL(path, node.url).href);
    await prepared.dispose();
  };
  /** Opens a board. */
  const open = async (page: Page, path: string, name: DemoName = 'Member') => {
    await goTo(page, path, name);
    await page.locator('.group').first().waitFor();
  };

  /** A new visitor, on the start page of this service or of another one. */
  const givenStart = async ({ url = node.url } = {}) => {
    const opened = await openPage(url);
    await opened.page.setViewportSize(DESKTOP);
    await goTo(opened.page, `${url}/`);
    return opened;
  };

  /** Somebody looks at a new board with three groups, and cards in the first one. */
  const givenBoard = async ({ as, cards = ['Rope', 'Anchor', 'Sail'], projectId = 1 }: WantedBoard = {}) => {
    const opening = openPage(node.url);
    const api = admin.as({ projectId });
    const { board } = await api.boards.create.mutate({ title: `Voyage ${++boards}` });
    const groups: number[] = [];
    for (const title of [TO_DO, DOING, DONE])
      groups.push((await api.groups.create.mutate({ board_id: board.id, title })).group.id);
    await api.cards.createMany.mutate({ cards: cards.map((title) => ({ title, group_id: groups[0] })) });
    const path = `/projects/${projectId}/boards/${board.id}`;
    const { page, problems } = await opening;
    await page.setViewportSize(DESKTOP);
    await open(page, path, as);
    return { page, problems, api, board, groups, path };
  };

  /** An empty page. `enter` opens an address, signed in as somebody or as nobody, and waits until all is drawn. */
  const givenPage = async (url = node.url) => {
    const { page, problems } = await openPage(url);
    await page.setViewportSize(DESKTOP);
    const calls = watchCalls(page);
    const untilDrawn = async () => {
      await page.locator('h1').first().waitFor();
      await calls.untilQuiet();
    };
    const enter = async (path: string, name?: DemoName) => {
      await goTo(page, url + path, name);
      await untilDrawn();
    };
    const reopen = async (path: string) => {
      await page.goto(url + path);
      await untilDrawn();
    };
    return { page, problems, enter, open: reopen, ...calls };
  };
  return { givenStart, givenBoard, givenPage, clientOf, open, url: () => node.url, db: () => node.db };
}

const credentialsOf = (name: DemoName) => ({ email: emailOf(name), password: DEMO_USER.password });

/** `refusals` are the calls that the role of the user does not allow. */
function watchCalls(page: Page) {
  const refusals: string[] = [];
  const waiting = new Set<unknown>();
  const CALL = /\/trpc\/(?!events\.follow)|\/demo-users/;
  page.on('request', (request) => CALL.test(request.url()) && waiting.add(request));
  page.on('requestfailed', (request) => waiting.delete(request));
  page.on('requestfinished', async (request) => {
    const body = waiting.has(request) && (await (await request.response())?.text().catch(() => ''));
    if (body && /"httpStatus":403/.test(body)) refusals.push(`403 ${new URL(request.url()).pathname}`);
    waiting.delete(request);
  });
  const isQuiet = async () => {
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    // A button that asks first is busy until it has an answer.
    return waiting.size === 0 && (await page.locator('.waiting, [aria-busy=true]:not(button)').count()) === 0;
  };
  return { refusals, untilQuiet: () => vi.waitUntil(isQuiet, LONGEST_WAIT) };
}

/** Rolls a new card of the demo template out: one project has it, the next stage waits. Returns the rollout's id. */
export async function givenRollout(admin: Client, title = 'Say hello'): Promise<number> {
  await admin.masterCards.create.mutate({ group_id: 1, title });
  const { release } = await admin.releases.publish.mutate({ board_id: 1, note: title });
  const stages = [{ projects: [1] }, { percent: 100 }];
  const { id } = (await admin.rollouts.plan.mutate({ release_id: release.id, stages })).rollout;
  const stateOf = async () => (await admin.rollouts.get.query({ id })).rollout;
  await vi.waitUntil(async () => (await stateOf()).state === 'planned', LONGEST_WAIT);
  await admin.rollouts.start.mutate({ id });
  await vi.waitUntil(async () => (await stateOf()).is_soaking, LONGEST_WAIT);
  return id;
}

export const cardOf = (page: Page, title: string) =>
  page.locator('.board .card', { has: page.getByText(title, { exact: true }) });
export const listOf = (page: Page, group: string) => page.getByRole('list', { name: group, exact: true });
export const cardsIn = (page: Page, group: string) => listOf(page, group).locator('.title').allTextContents();
export const groupsOf = (page: Page) =>
  page.locator('.board .cards').evaluateAll((lists) => lists.map((list) => list.ariaLabel));
export const tabOf = (page: Page, title: string) =>
  page.locator('#boards a', { has: page.getByText(title, { exact: true }) });
export const inputOf = (page: Page, group: string) => page.getByLabel(`Add a card to ${group}`, { exact: true });
export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
export const dialog = (page: Page, name: string) => page.getByRole('dialog', { name, exact: true });
export const focused = (page: Page) => page.evaluate<string>('document.activeElement.textContent');
export const callsOf = (page: Page, procedure: string) => page.locator('.calls').getByText(procedure).count();

/** Presses a key while a card has the focus. */
export const pressOn = (page: Page, title: string, key: string) => cardOf(page, title).locator('.title').press(key);

/** Takes a card to a group, and does not let go of it. */
export async function dragOver(page: Page, title: string, group: string) {
  await cardOf(page, title).hover();
  await page.mouse.down();
  await listOf(page, group).hover();
}

export async function choose(page: Page, menu: string, item: string) {
  await button(page, menu).click();
  await button(page, item).click();
}

/** Fills in fields by their labels, and presses Enter in the last one. */
export async function send(form: Page | Locator, fields: Record<string, string>) {
  for (const [label, text] of Object.entries(fields)) await form.getByLabel(label, { exact: true }).fill(text);
  await form.getByLabel(Object.keys(fields).at(-1)!, { exact: true }).press('Enter');
}

export async function addCard(page: Page, group: string, title: string) {
  await send(page, { [`Add a card to ${group}`]: title });
  await untilTold(page, `Added “${title}”.`);
}

/** Waits until the page says this about a change, or about its failure. */
export const untilTold = (page: Page, text: string | RegExp) =>
  page.locator('.messages').getByText(text, { exact: true }).waitFor();
export const untilMoved = (page: Page, title: string, group: string, place: string) =>
  untilTold(page, `Moved “${title}” to ${group}, place ${place}.`);

/** Holds back the first call of a procedure, as `cards.move`. */
export const holdBackCall = (page: Page, procedure: string) => holdBack(page, `**/trpc/*${procedure}*`);
/** Moves a card by a key press, and holds back the call. */
export async function holdMove(page: Page, title: string, key: string) {
  const move = await holdBackCall(page, 'cards.move');
  await pressOn(page, title, key);
  await move.first;
  return move;
}
