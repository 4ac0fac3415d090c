import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { type Client, createClient } from '../../client/client.ts';
import { buildPages } from '../../server/package/pageBuild.ts';
import { browserPath } from './browserPath.ts';
import { givenDirectory, removeProcesses, startProgram } from './process.ts';

/** `npm run pictures`: takes the pictures of the guides from a service with demo data, so that they show what there is. */

const FOLDER = join(import.meta.dirname, '../../docs/pictures');
const SIZE = { width: 1280, height: 800 };
const PASSWORD = 'demo-password';

await buildPages();
await mkdir(FOLDER, { recursive: true });
const service = await startProgram(['server/boot/main.js'], {
  DATA_DIR: await givenDirectory(),
  PORT: '0',
  DEMO_DATA: 'on',
});
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu'] });
try {
  await take('board', 'owner@demo.test', async (page) => {
    await page.getByRole('link', { name: /Launch plan/ }).click();
    await page.getByRole('link', { name: 'Write the launch post' }).click();
    await page.getByText('A first draft is ready').waitFor();
  });
  const rollout = await rollOut(
    createClient({ url: service.url, signIn: { email: 'admin@demo.test', password: PASSWORD } }),
  );
  await take('rollout', 'admin@demo.test', async (page) => {
    await page.goto(`${service.url}/admin/rollouts/${rollout}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
  });
  await take('api', 'member@demo.test', async (page) => {
    await page.goto(`${service.url}/docs#/cardsCreate`);
    await page.getByRole('heading', { level: 1 }).waitFor();
  });
} finally {
  await browser.close();
  await service.stop();
  await removeProcesses();
}

async function take(name: string, email: string, show: (page: Page) => Promise<void>): Promise<void> {
  const page = await signedIn(browser, email);
  await show(page);
  // Until nothing is being read or moves.
  await page.waitForLoadState('networkidle', { timeout: 2000 }).catch(() => undefined);
  await page.screenshot({ path: join(FOLDER, `${name}.png`), animations: 'disabled' });
  console.log(`Took docs/pictures/${name}.png`);
  await page.close();
}

async function signedIn(browser: Browser, email: string): Promise<Page> {
  const page = await browser.newPage({ viewport: SIZE, colorScheme: 'light', locale: 'en-GB', timezoneId: 'UTC' });
  await page.goto(service.url);
  await page.getByRole('button', { name: 'Sign in' }).first().click();
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByLabel('Password').press('Enter');
  await page.getByRole('button', { name: /^Account of/ }).waitFor();
  return page;
}

/** A rollout to 24 projects in three stages, in its second one. */
async function rollOut(client: Client): Promise<number> {
  const [known] = (await client.projects.list.query({ limit: 1 })).projects;
  const { platform_id, tools } = known!;
  for (let number = 1; number <= 24; number++)
    await client.projects.create.mutate({ platform_id, name: `Harbor ${number}`, tools });
  const { boards } = await client.masterBoards.list.query();
  const board_id = boards[0]!.id;
  await client.masterBoards.sync.mutate({ board_id });
  const { groups } = await client.masterGroups.list.query({ board_id });
  await client.masterCards.create.mutate({ group_id: groups[0]!.id, title: 'Say hello to your team' });
  const { release } = await client.releases.publish.mutate({ board_id });
  const stages = [{ percent: 10, soak_minutes: 0 }, { percent: 50 }, { percent: 100 }];
  const { rollout } = await client.rollouts.plan.mutate({
    release_id: release.id,
    stages,
    note: 'A friendlier first day',
  });
  await until(async () => (await client.rollouts.get.query({ id: rollout.id })).rollout.state === 'planned');
  await client.rollouts.start.mutate({ id: rollout.id });
  await until(async () => {
    const { stage, is_soaking } = (await client.rollouts.get.query({ id: rollout.id })).rollout;
    return stage === 2 && is_soaking;
  });
  return rollout.id;
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 200));
}
