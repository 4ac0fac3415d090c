import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { type ClientOptions, createClient } from '../../client/client.ts';
import { DEMO_USER, type DemoName, emailOf } from '../../server/database/seed/demoUsers.ts';
import { holdBack, pageForSuite } from './browser.ts';
import { givenDemoService } from './demo.ts';

const DESKTOP = { width: 1400, height: 900 };
export const [TO_DO, DOING, DONE] = ['To do', 'In progress', 'Done'] as const;

type Wanted = { as?: DemoName; cards?: string[]; projectId?: number };

/** The page of a service with demo data; each test begins as a new visitor, and has a board of its own. */
export function pageOfSuite() {
  const openPage = pageForSuite();
  let demo: Awaited<ReturnType<typeof givenDemoService>>;
  let boards = 0;
  beforeAll(async () => {
    demo = await givenDemoService();
  });
  afterAll(() => demo.close());

  const givenStart = async ({ url = demo.url } = {}) => {
    const opened = await openPage(url);
    await opened.page.setViewportSize(DESKTOP);
    await forget(opened.page, url);
    await opened.page.goto(url);
    return opened;
  };
  /** The service, as somebody else uses it. */
  const clientOf = (name: DemoName, more: Partial<ClientOptions> = {}) =>
    createClient({ url: demo.url, signIn: credentialsOf(name), ...more });

  /** Opens an address, signed in since an earlier visit. */
  const open = async (page: Page, path: string, name: DemoName = 'Member') => {
    const { token, email } = await createClient({ url: demo.url }).auth.authenticate.mutate(credentialsOf(name));
    const session = JSON.stringify({ token, name: email, isSignedIn: true });
    await forget(page, demo.url);
    await page.evaluate(`localStorage.setItem('deckhand.session', ${JSON.stringify(session)})`);
    await page.goto(demo.url + path);
    await page.locator('.group').first().waitFor();
  };

  /** A member looks at a new board with three groups, and cards in the first one. */
  const givenBoard = async ({ as, cards = ['Rope', 'Anchor', 'Sail'], projectId = 1 }: Wanted = {}) => {
    const api = clientOf('Admin').as({ projectId });
    const { board } = await api.boards.create.mutate({ title: `Voyage ${++boards}` });
    const groups: number[] = [];
    for (const title of [TO_DO, DOING, DONE])
      groups.push((await api.groups.create.mutate({ board_id: board.id, title })).group.id);
    await api.cards.createMany.mutate({ cards: cards.map((title) => ({ title, group_id: groups[0] })) });
    const path = `/projects/${projectId}/boards/${board.id}`;
    const { page, problems } = await openPage(demo.url);
    await page.setViewportSize(DESKTOP);
    await open(page, path, as);
    return { page, problems, api, board, groups, path };
  };
  return { givenStart, givenBoard, clientOf, open, db: () => demo.db };
}

const credentialsOf = (name: DemoName) => ({ email: emailOf(name), password: DEMO_USER.password });

/** On a page without scripts, which would use the session of the test before. */
async function forget(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/health/live`);
  await page.evaluate('localStorage.clear(); sessionStorage.clear()');
}

/** A second browser, as for a second person. */
export async function newBrowser(page: Page, more = {}): Promise<Page> {
  const browser = page.context().browser()!;
  const context = await browser.newContext({ viewport: DESKTOP, ...more });
  onTestFinished(() => context.close());
  return context.newPage();
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
