import { type Browser, chromium } from 'playwright-core';
import { createClient } from '../../client/client.ts';
import { buildPages } from '../../server/package/pageBuild.ts';
import { browserPath } from '../harness/browserPath.ts';
import { givenDirectory, removeProcesses, startProgram } from '../harness/process.ts';

/** How soon a browser shows a board of 1,000 cards, how soon it draws a move, and what it loads for that: `npm run bench:page`. */

const CARDS = 1000;
const ROUNDS = 5;
const USER = { email: 'owner@demo.test', password: 'demo-password' };

await buildPages();
const service = await startProgram(['server/boot/main.js'], {
  ...{ DATA_DIR: await givenDirectory(), PORT: '0', DEMO_DATA: 'on' },
  RATE_LIMIT_PER_MINUTE: '100000',
});
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu'] });
try {
  const address = await fillBoard();
  const { token } = await createClient({ url: service.url }).auth.authenticate.mutate(USER);
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) rounds.push(await measure(browser, address, token));
  // The first one warms the service up.
  const [, ...warm] = rounds;
  const print = (name: string, values: number[], unit: string) =>
    console.log(`${name}: ${Math.round(median(values))} ${unit} (${values.map(Math.round).join(', ')})`);
  print(
    `${CARDS} cards shown`,
    warm.map(({ shown }) => shown),
    'ms',
  );
  print(
    'a move drawn',
    warm.map(({ moved }) => moved),
    'ms',
  );
  print(
    'script over the wire',
    warm.map(({ scriptBytes }) => scriptBytes / 1000),
    'kB',
  );
} finally {
  await browser.close();
  await service.stop();
  await removeProcesses();
}

async function fillBoard(): Promise<string> {
  const client = createClient({ url: service.url, signIn: USER });
  const { board } = await client.boards.create.mutate({ title: 'Large' });
  for (let column = 0; column < 5; column++) {
    const { group } = await client.groups.create.mutate({ board_id: board.id, title: `Group ${column + 1}` });
    const cards = Array.from({ length: CARDS / 5 }, (_, index) => ({ title: `Card ${index + 1}`, group_id: group.id }));
    for (let from = 0; from < cards.length; from += 100)
      await client.cards.createMany.mutate({ cards: cards.slice(from, from + 100) });
  }
  return `${service.url}/projects/${board.project_id}/boards/${board.id}`;
}

/** A new visitor each time: nothing is in the cache of the browser. */
async function measure(browser: Browser, address: string, token: string) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.addInitScript(
    `localStorage.setItem('deckhand.session', ${JSON.stringify(JSON.stringify({ token, name: USER.email, isSignedIn: true }))})`,
  );
  await page.goto(address, { waitUntil: 'commit' });
  const shown = await page.evaluate<number, number>(
    (count) =>
      new Promise((resolve) => {
        const look = () =>
          document.querySelectorAll('.card').length >= count
            ? requestAnimationFrame(() => resolve(performance.now()))
            : requestAnimationFrame(look);
        look();
      }),
    CARDS,
  );
  const scriptBytes = await page.evaluate<number>(() =>
    performance
      .getEntriesByType('resource')
      .filter(({ name }) => name.endsWith('.js'))
      .reduce((sum, entry) => sum + (entry as PerformanceResourceTiming).transferSize, 0),
  );
  const moved = await page.evaluate<number>(
    () =>
      new Promise((resolve) => {
        const card = document.querySelector<HTMLElement>('.card')!;
        const { id } = card;
        const list = card.closest('.group')!.nextElementSibling!;
        const begun = performance.now();
        const title = card.querySelector('.title')!;
        title.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', altKey: true, bubbles: true }));
        const look = () =>
          list.querySelector(`#${id}`) ? resolve(performance.now() - begun) : requestAnimationFrame(look);
        look();
      }),
  );
  await page.context().close();
  return { shown, moved, scriptBytes };
}

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
