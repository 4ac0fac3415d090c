import { type Browser, chromium } from 'playwright-core';
import { createClient } from '../../client/client.ts';
import { buildPages } from '../../server/package/pageBuild.ts';
import { browserPath } from '../harness/browserPath.ts';
import { median } from '../harness/load.ts';
import { givenDemo } from './programs.ts';
import type { Run } from './run.ts';
import { type Table, whole } from './table.ts';

const CARDS = 1000;
const ROUNDS = 5;
const USER = { email: 'owner@demo.test', password: 'demo-password' };

/** How soon a browser shows a board of 1,000 cards, how soon it draws a move, and what it loads for that. */
export async function measurePage({ isEmbedded, rounds = ROUNDS }: Run): Promise<Table[]> {
  await buildPages();
  const { url, stop } = await (await givenDemo({ isEmbedded })).start();
  const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    const address = await fillBoard(url);
    const { token } = await createClient({ url }).auth.authenticate.mutate(USER);
    // The first one warms the service up.
    await measure(browser, address, token);
    const measured: Measured[] = [];
    while (measured.length < rounds) measured.push(await measure(browser, address, token));
    const row = (name: string, values: number[]) => [name, whole(median(values)), values.map(whole).join(', ')];
    const rows = [
      row(
        `${CARDS} cards shown, ms`,
        measured.map(({ shown }) => shown),
      ),
      row(
        'a move drawn, ms',
        measured.map(({ moved }) => moved),
      ),
      row(
        'script over the wire, kB',
        measured.map(({ scriptBytes }) => scriptBytes / 1000),
      ),
    ];
    return [{ title: 'The page of a board', columns: ['', 'median', 'rounds'], rows }];
  } finally {
    await browser.close();
    await stop();
  }
}

type Measured = { shown: number; moved: number; scriptBytes: number };

async function fillBoard(url: string): Promise<string> {
  const client = createClient({ url, signIn: USER });
  const { board } = await client.boards.create.mutate({ title: 'Large' });
  for (let column = 0; column < 5; column++) {
    const { group } = await client.groups.create.mutate({ board_id: board.id, title: `Group ${column + 1}` });
    const cards = Array.from({ length: CARDS / 5 }, (_, index) => ({ title: `Card ${index + 1}`, group_id: group.id }));
    for (let from = 0; from < cards.length; from += 100)
      await client.cards.createMany.mutate({ cards: cards.slice(from, from + 100) });
  }
  return `${url}/projects/${board.project_id}/boards/${board.id}`;
}

/** A new visitor each time: nothing is in the cache of the browser. */
async function measure(browser: Browser, address: string, token: string): Promise<Measured> {
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
