import { makeCaller } from '../harness/caller.ts';
import { removeProcesses, runToEnd, signIn, startService } from '../harness/process.ts';
import { givenBenchDatabase } from './database.ts';

/** Measures sign-ins and their effect on other calls: `npm run bench:sign-in`, or with `-- embedded` on the embedded database. */

const LIST = '/services/operations/v1/operations/boards/list';
const AUTHENTICATE = '/v1/authenticate';
const FLOOD_SECONDS = 10;
const FLOODING = 8;
const SAMPLES = 200;
const GUESSING = 60;
const NEWCOMERS = 20;
const right = { email: 'member@demo.test', password: 'demo-password' };

const { settings: database, remove } = await givenBenchDatabase();
const settings = {
  ...database,
  RATE_LIMIT_PER_MINUTE: '100000000',
  TRUST_PROXY: '127.0.0.1',
  LOG_LEVEL: 'warn',
};

try {
  await runToEnd(['server/cli/deckhand.js', 'demo'], settings);
  const { url } = await startService(settings);
  const member = await signIn(url);
  const asNobody = makeCaller(url);
  await measureList(1);

  const idle = await measureList(5);
  const [flood, busy] = await Promise.all([measureFlood(), measureList(FLOOD_SECONDS)]);
  console.log(`boards/list while idle: p50 ${idle.p50} ms, p99 ${idle.p99} ms`);
  console.log(`boards/list in a flood of sign-ins: p50 ${busy.p50} ms, p99 ${busy.p99} ms`);
  console.log(`sign-ins: ${flood.toFixed(1)} per second, ${FLOODING} at once`);

  const { unknown, wrong } = await measureGuesses();
  const difference = (Math.abs(unknown - wrong) / Math.min(unknown, wrong)) * 100;
  console.log(`unknown e-mail: median ${unknown.toFixed(2)} ms; wrong password: median ${wrong.toFixed(2)} ms`);
  console.log(`they differ by ${difference.toFixed(2)} % over ${SAMPLES} samples each, one after the other`);

  const { served, longest, guesses } = await measureNewcomers();
  console.log(`newcomers while ${GUESSING} addresses guess, one at a time each: ${served} of ${NEWCOMERS} signed in,`);
  console.log(`in ${longest.toFixed(0)} ms at most; ${guesses.toFixed(1)} guesses per second were answered`);

  /** Lists boards at a steady rate, without waiting for answers. */
  async function measureList(seconds: number) {
    const times: Promise<number>[] = [];
    for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
      times.push(timeOf(() => member.post(LIST), 200));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const sorted = (await Promise.all(times)).sort((one, other) => one - other);
    return { p50: at(sorted, 0.5).toFixed(1), p99: at(sorted, 0.99).toFixed(1) };
  }

  async function measureFlood(): Promise<number> {
    const end = performance.now() + FLOOD_SECONDS * 1000;
    let count = 0;
    const keepSigningIn = async () => {
      while (performance.now() < end) {
        await timeOf(() => asNobody.post(AUTHENTICATE, right), 200);
        count++;
      }
    };
    await Promise.all(Array.from({ length: FLOODING }, keepSigningIn));
    return count / FLOOD_SECONDS;
  }

  /** People at new addresses, one after the other, while many addresses guess at random accounts. */
  async function measureNewcomers() {
    const from = (address: string, sent: object) => asNobody.post(AUTHENTICATE, sent, { 'x-forwarded-for': address });
    let isOver = false;
    let answered = 0;
    const begun = performance.now();
    const keepGuessing = async (at: number) => {
      while (!isOver) {
        const email = `${at}-${answered}@demo.test`;
        const { status } = await from(`10.8.0.${at}`, { email, password: 'wrong-password' });
        if (status === 401) answered++;
        else await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const guessing = Array.from({ length: GUESSING }, (_, at) => keepGuessing(at));
    // Until each of them has failed once.
    await new Promise((resolve) => setTimeout(resolve, 5000));

    let served = 0;
    let longest = 0;
    for (let newcomer = 0; newcomer < NEWCOMERS; newcomer++) {
      const start = performance.now();
      const { status } = await from(`10.9.0.${newcomer}`, right);
      if (status === 200) served++;
      longest = Math.max(longest, performance.now() - start);
    }
    isOver = true;
    await Promise.all(guessing);
    return { served, longest, guesses: (answered / (performance.now() - begun)) * 1000 };
  }

  /** Each from another address, so that no attempt is blocked for guessing. */
  async function measureGuesses() {
    const times = { unknown: [] as number[], wrong: [] as number[] };
    for (let sample = 0; sample < SAMPLES; sample++) {
      const headers = { 'x-forwarded-for': `10.0.${sample >> 8}.${sample & 255}` };
      const guess = (email: string) =>
        timeOf(() => asNobody.post(AUTHENTICATE, { email, password: 'wrong-password' }, headers), 401);
      const both = [
        { kind: 'unknown', email: 'nobody@demo.test' },
        { kind: 'wrong', email: right.email },
      ] as const;
      // They alternate in going first.
      for (const { kind, email } of sample % 2 ? both : both.toReversed()) times[kind].push(await guess(email));
    }
    const median = (all: number[]) =>
      at(
        all.sort((one, other) => one - other),
        0.5,
      );
    return { unknown: median(times.unknown), wrong: median(times.wrong) };
  }
} finally {
  await removeProcesses();
  await remove();
}

async function timeOf(call: () => Promise<{ status: number }>, expected: number): Promise<number> {
  const start = performance.now();
  const { status } = await call();
  if (status !== expected) throw new Error(`${status} instead of ${expected}`);
  return performance.now() - start;
}

function at(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
