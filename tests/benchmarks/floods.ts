import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import {
  askOnce,
  bytesOf,
  closeAll,
  median,
  open,
  openMany,
  percentiles,
  sendSteadily,
  whileRepeating,
} from '../harness/load.ts';
import { readRows, signIn } from '../harness/process.ts';
import { openLists } from './beside.ts';
import { givenDemo, type Settings } from './programs.ts';
import type { Run } from './run.ts';
import { precise, type Table, whole } from './table.ts';
import { call } from './workloads.ts';

/** How much searches, sign-ins and guesses at passwords slow down others. */

const LISTS_PER_SECOND = 50;

/** Lists boards 50 times per second, without waiting for answers. */
async function measureLists(url: string, token: string | undefined, seconds: number): Promise<string[]> {
  const lists = await openLists(url, token);
  const times = await sendSteadily(lists, LISTS_PER_SECOND, seconds);
  closeAll(lists);
  return percentiles(times, 0.5, 0.99).map((time) => precise(time, 1));
}

const CARDS = 100_000;
const SEARCHES_AT_ONCE = 10;
const TEXTS = {
  'a rare word': 'needle 77777',
  'a word of every card': 'lorem',
  'no match': 'nowhere',
  'two letters': 'zq',
};

/** Searches for text in 100,000 cards, while another user lists boards. */
export async function measureSearch({ isEmbedded, seconds = 10 }: Run): Promise<Table[]> {
  const { settings, start } = await givenDemo({ isEmbedded });
  await addCards(settings);
  const { url, stop } = await start();
  const [searcher, { token }] = [await signIn(url, 'outsider@demo.test'), await signIn(url)];
  await measureLists(url, token, 2);
  const rows = [['nobody searches', '', '', '', ...(await measureLists(url, token, seconds / 2))]];
  for (const [name, text] of Object.entries(TEXTS)) {
    const begun = performance.now();
    const { cards } = await searcher.rpc.cards.list.query({ text });
    const alone = performance.now() - begun;
    const request = { ...call('RPC', '', 'cards.list', { text }), token: searcher.token };
    const searching = await openMany(SEARCHES_AT_ONCE, url, request, 200);
    let searches = 0;
    const lists = await whileRepeating(
      searching.map(({ send }) => async () => {
        await send();
        searches++;
      }),
      () => measureLists(url, token, seconds),
    );
    closeAll(searching);
    rows.push([name, whole(cards.length), whole(alone), whole(searches / seconds), ...lists]);
  }
  await stop();
  const columns = [
    'search for',
    'cards',
    'ms alone',
    `per second, ${SEARCHES_AT_ONCE} at once`,
    'boards/list p50 ms',
    'p99',
  ];
  return [{ title: `Searches in ${whole(CARDS)} cards`, columns, rows }];
}

async function addCards(settings: Settings) {
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

const AUTHENTICATE = '/api/v1/authenticate';
const FLOODING = 8;
const SAMPLES = 200;
const GUESSING = 60;
const NEWCOMERS = 20;
const RIGHT = { email: 'member@demo.test', password: 'demo-password' };

/** A sign-in from an address. */
const signInFrom = (address: string, { email, password }: { email: string; password: string }) => ({
  path: AUTHENTICATE,
  body: JSON.stringify({ email, password }),
  headers: { 'X-Forwarded-For': address },
});
const guessAt = (address: string, email: string) => signInFrom(address, { email, password: 'wrong-password' });

/** Sign-ins, and how they slow down others; guesses at passwords, which must not tell which accounts exist. */
export async function measureSignIn({ isEmbedded, seconds = 10, rounds: samples = SAMPLES }: Run): Promise<Table[]> {
  const { start } = await givenDemo({ isEmbedded }, { TRUST_PROXY: '127.0.0.1' });
  const { url, stop } = await start();
  const { token } = await signIn(url);
  await measureLists(url, token, 1);
  const idle = await measureLists(url, token, seconds / 2);
  const flooding = await openMany(FLOODING, url, { path: AUTHENTICATE, body: JSON.stringify(RIGHT) }, 200);
  let signIns = 0;
  const flooded = await whileRepeating(
    flooding.map(({ send }) => async () => {
      await send();
      signIns++;
    }),
    () => measureLists(url, token, seconds),
  );
  closeAll(flooding);
  const { unknown, wrong } = await measureGuesses(url, samples);
  const { served, longest, guesses } = await measureNewcomers(url);
  await stop();
  const rows = [
    ['boards/list while idle, ms p50 and p99', ...idle],
    [`boards/list in a flood of sign-ins, ${FLOODING} at once`, ...flooded],
    ['sign-ins per second', precise(signIns / seconds, 1), ''],
    ['a guess at an unknown address, and at a password: median ms', precise(unknown), precise(wrong)],
    ['they differ by', `${precise((Math.abs(unknown - wrong) / Math.min(unknown, wrong)) * 100)} %`, ''],
    [`newcomers who signed in while ${GUESSING} addresses guess`, `${served} of ${NEWCOMERS}`, `${whole(longest)} ms`],
    ['guesses answered per second', precise(guesses, 1), ''],
  ];
  return [{ title: 'Sign-ins', columns: ['', '', ''], rows, note: `${samples} guesses of each kind.` }];
}

/** Each from another address, so that no attempt is blocked for guessing. */
async function measureGuesses(url: string, samples: number): Promise<{ unknown: number; wrong: number }> {
  const times = { unknown: [] as number[], wrong: [] as number[] };
  const kinds = [['unknown', 'nobody@demo.test'] as const, ['wrong', RIGHT.email] as const];
  const { send, close } = await open(url, { path: AUTHENTICATE }, 401);
  for (let sample = 0; sample < samples; sample++) {
    // They alternate in going first.
    for (const [kind, email] of sample % 2 ? kinds : kinds.toReversed())
      times[kind].push(await send(bytesOf(url, guessAt(`10.0.${sample >> 8}.${sample & 255}`, email))));
  }
  close();
  return { unknown: median(times.unknown), wrong: median(times.wrong) };
}

/** People at new addresses, one after the other, while many addresses guess at random accounts. */
async function measureNewcomers(url: string): Promise<{ served: number; longest: number; guesses: number }> {
  let answered = 0;
  const guessing = Array.from({ length: GUESSING }, (_, at) => async () => {
    const { status } = await askOnce(url, guessAt(`10.8.0.${at}`, `${at}-${answered}@demo.test`));
    if (status === 401) answered++;
    else await pause(20);
  });
  const begun = performance.now();
  const times = await whileRepeating(guessing, async () => {
    // Until each of them has failed once.
    await pause(5000);
    const newcomers: { status: number; milliseconds: number }[] = [];
    for (let newcomer = 0; newcomer < NEWCOMERS; newcomer++)
      newcomers.push(await askOnce(url, signInFrom(`10.9.0.${newcomer}`, RIGHT)));
    return newcomers;
  });
  return {
    served: times.filter(({ status }) => status === 200).length,
    longest: Math.max(...times.map(({ milliseconds }) => milliseconds)),
    guesses: (answered / (performance.now() - begun)) * 1000,
  };
}
