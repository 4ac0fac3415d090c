import { makeCaller } from '../harness/caller.ts';
import { signIn } from '../harness/process.ts';
import { measureList, onDemoService } from './demoService.ts';
import { median } from './table.ts';

/** Measures sign-ins and their effect on other calls: `npm run bench:sign-in`, or with `-- embedded` on the embedded database. */

const AUTHENTICATE = '/v1/authenticate';
const FLOOD_SECONDS = 10;
const FLOODING = 8;
const SAMPLES = 200;
const GUESSING = 60;
const NEWCOMERS = 20;
const right = { email: 'member@demo.test', password: 'demo-password' };

await onDemoService(measureSignIns, { more: { TRUST_PROXY: '127.0.0.1' } });

async function measureSignIns(url: string) {
  const member = await signIn(url);
  const asNobody = makeCaller(url);
  await measureList(member, 1);

  const idle = await measureList(member, 5);
  const [flood, busy] = await Promise.all([measureFlood(), measureList(member, FLOOD_SECONDS)]);
  console.log(`boards/list while idle: ${idle}`);
  console.log(`boards/list in a flood of sign-ins: ${busy}`);
  console.log(`sign-ins: ${flood.toFixed(1)} per second, ${FLOODING} at once`);

  const { unknown, wrong } = await measureGuesses();
  const difference = (Math.abs(unknown - wrong) / Math.min(unknown, wrong)) * 100;
  console.log(`unknown e-mail: median ${unknown.toFixed(2)} ms; wrong password: median ${wrong.toFixed(2)} ms`);
  console.log(`they differ by ${difference.toFixed(2)} % over ${SAMPLES} samples each, one after the other`);

  const { served, longest, guesses } = await measureNewcomers();
  console.log(`newcomers while ${GUESSING} addresses guess, one at a time each: ${served} of ${NEWCOMERS} signed in,`);
  console.log(`in ${longest.toFixed(0)} ms at most; ${guesses.toFixed(1)} guesses per second were answered`);

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
    return { unknown: median(times.unknown), wrong: median(times.wrong) };
  }
}

async function timeOf(call: () => Promise<{ status: number }>, expected: number): Promise<number> {
  const start = performance.now();
  const { status } = await call();
  if (status !== expected) throw new Error(`${status} instead of ${expected}`);
  return performance.now() - start;
}
