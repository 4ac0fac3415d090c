import { sql } from 'kysely';
import { readRows, removeProcesses, runToEnd, signIn, startService } from '../harness/process.ts';
import { givenBenchDatabase } from './database.ts';

/**
 * How much searches for text in 100,000 cards slow down other users: `npm run bench:search`, or with `-- embedded` on the
 * embedded database. Meanwhile another user lists boards 50 times per second.
 */

const CARDS = 100_000;
const AT_ONCE = 10;
const SECONDS = 10;
const LIST = '/services/operations/v1/operations/boards/list';
const TEXTS = {
  'a rare word': 'needle 77777',
  'a word of every card': 'lorem',
  'no match': 'nowhere',
  'two letters': 'zq',
};

const { settings: database, remove } = await givenBenchDatabase();
const settings = { ...database, RATE_LIMIT_PER_MINUTE: '100000000', LOG_LEVEL: 'error' };
try {
  await runToEnd(['server/cli/deckhand.js', 'demo'], settings);
  for (let first = 1; first <= CARDS; first += 10_000) {
    await readRows(
      settings,
      sql`
      insert into cards (project_id, platform_id, title, description, position, sort_order)
      select 3, 2, 'Card ' || n, 'lorem ipsum dolor sit amet, needle ' || n || ' ' || repeat(md5(n::text) || ' ', 10), n, n
      from generate_series(${sql.lit(first)}, ${sql.lit(first + 9999)}) as n`,
    );
  }
  await readRows(settings, sql`analyze cards`);
  const { url } = await startService(settings);
  const [searcher, other] = [await signIn(url, 'outsider@demo.test'), await signIn(url)];
  await measureList(2);

  console.log(`boards/list while nobody searches: ${await measureList(5)}`);
  for (const [name, text] of Object.entries(TEXTS)) {
    const begun = performance.now();
    const { cards } = await searcher.rpc.cards.list.query({ text });
    const alone = performance.now() - begun;
    let isOver = false;
    let searches = 0;
    const searching = Array.from({ length: AT_ONCE }, async () => {
      const caller = searcher.alone();
      for (; !isOver; searches++) await caller.rpc.cards.list.query({ text });
    });
    const listed = await measureList(SECONDS);
    isOver = true;
    await Promise.all(searching);
    console.log(
      `${name}: ${cards.length} cards, ${alone.toFixed(0)} ms alone; ${AT_ONCE} at once: ${(searches / SECONDS).toFixed(0)} per second, boards/list ${listed}`,
    );
  }

  /** Sends at a steady rate, without waiting for answers. */
  async function measureList(seconds: number): Promise<string> {
    const times: Promise<number>[] = [];
    for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
      const begun = performance.now();
      times.push(other.post(LIST).then(({ status }) => (status === 200 ? performance.now() - begun : Number.NaN)));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const all = await Promise.all(times);
    const sorted = all.filter((time) => !Number.isNaN(time)).sort((one, another) => one - another);
    const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(0);
    return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${all.length - sorted.length} failed`;
  }
} finally {
  await removeProcesses();
  await remove();
}
