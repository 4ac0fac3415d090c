import { sql } from 'kysely';
import { readRows, signIn } from '../harness/process.ts';
import { measureList, onDemoService } from './demoService.ts';

/**
 * How much searches for text in 100,000 cards slow down other users: `npm run bench:search`, or with `-- embedded` on the
 * embedded database. Meanwhile another user lists boards 50 times per second.
 */

const CARDS = 100_000;
const AT_ONCE = 10;
const SECONDS = 10;
const TEXTS = {
  'a rare word': 'needle 77777',
  'a word of every card': 'lorem',
  'no match': 'nowhere',
  'two letters': 'zq',
};

await onDemoService(measureSearches, { fill });

async function fill(settings: Record<string, string>) {
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
}

async function measureSearches(url: string) {
  const [searcher, other] = [await signIn(url, 'outsider@demo.test'), await signIn(url)];
  await measureList(other, 2);

  console.log(`boards/list while nobody searches: ${await measureList(other, 5)}`);
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
    const listed = await measureList(other, SECONDS);
    isOver = true;
    await Promise.all(searching);
    console.log(
      `${name}: ${cards.length} cards, ${alone.toFixed(0)} ms alone; ${AT_ONCE} at once: ${(searches / SECONDS).toFixed(0)} per second, boards/list ${listed}`,
    );
  }
}
