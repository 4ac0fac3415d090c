import type { Page } from 'playwright-core';
import { afterAll, beforeAll, vi } from 'vitest';
import { type Client, createClient } from '../../client/client.ts';
import { DEMO_USER, type DemoName, emailOf } from '../../server/database/seed/demoUsers.ts';
import { pageForSuite } from './browser.ts';
import { givenDemoDirectory } from './process.ts';
import { startNode } from './usedService.ts';

const LONGEST_WAIT = { interval: 20, timeout: 15_000 };

/** The page of a whole node with demo data: one that delivers events and works on rollouts, too. */
export function pageOfNode(settings = () => ({})) {
  const openPage = pageForSuite();
  let node: Awaited<ReturnType<typeof startNode>>;
  beforeAll(async () => {
    node = await startNode({ DATA_DIR: await givenDemoDirectory(), RATE_LIMIT_PER_MINUTE: '1000000', ...settings() });
  });
  afterAll(() => node.stop(true));
  const credentialsOf = (name: DemoName) => ({ email: emailOf(name), password: DEMO_USER.password });
  const clientOf = (name: DemoName) => createClient({ url: node.url, signIn: credentialsOf(name) });

  /** An empty page. `enter` opens an address, signed in as somebody or as nobody. */
  const givenPage = async (url = node.url) => {
    const { page, problems } = await openPage(url);
    await page.setViewportSize({ width: 1400, height: 900 });
    const calls = watchCalls(page);
    const open = async (path: string) => {
      await page.goto(url + path);
      await page.locator('h1').first().waitFor();
      await calls.untilQuiet();
    };
    const enter = async (path: string, name?: DemoName) => {
      const user = name && (await createClient({ url }).auth.authenticate.mutate(credentialsOf(name)));
      const session = user && { 'deckhand.session': JSON.stringify({ ...user, name: user.email, isSignedIn: true }) };
      // A page without scripts, which would use the session before.
      await page.goto(`${url}/health/live`);
      await page.evaluate(`localStorage.clear(); Object.assign(localStorage, ${JSON.stringify(session ?? {})})`);
      await open(path);
    };
    return { page, problems, open, enter, ...calls };
  };
  return { givenPage, clientOf, url: () => node.url };
}

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
