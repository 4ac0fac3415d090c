import { createHash } from 'node:crypto';
import { verifyDatabase } from '../../server/database/verify.ts';
import { programOptions } from '../harness/programOptions.ts';
import { makeRandom } from '../harness/random.ts';
import { findProblems, isAtRest } from './check.ts';
import { startClients } from './clients.ts';
import { cutOpenTransactions, endLife, installGate, SETUP } from './gate.ts';
import { openNode, openShared } from './nodes.ts';
import { makeOutside } from './outside.ts';
import { makeSchedule, type Schedule } from './schedule.ts';
import { givenVirtualServer } from './server.ts';
import { installTime, makeLife, setVirtualNow, tasks, virtualNow } from './time.ts';
import { makeWorld } from './world.ts';

/** Runs two nodes under schedules that seeds decide, and checks what they leave: `npm run test:night -- schedules`. */

const options = programOptions('node tests/schedules/main.ts', {
  seeds: '100',
  from: '1',
  trace: 'off',
  /** Ends with the first seed that fails with this text. */
  until: 'off',
});
const DAY = 86_400_000;
/** How often the whole database is verified, and cleaned up. */
const VERIFIED_EVERY = 50;

/** What seeds must show, or they test less than they seem to. */
const LABELS = [
  'lock waited for',
  'lease lost',
  'event delivered twice',
  'key replayed',
  'key held by another call',
  'key taken over',
  'deadlock retried',
  'serialization failure retried',
  'stale plan retried',
  'connection lost',
  'answer lost',
  'connection lost during commit',
  'node killed',
];

/** What a thousand seeds must show. */
const RARE_LABELS = ['mail sent twice'];

installTime();
installGate();
const server = await givenVirtualServer();
if (!server) {
  console.log('SKIPPED: the programs of a PostgreSQL server are not installed.');
  process.exit(0);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
let isFailed = false;
try {
  const shared = await openShared(server.url);
  const nodes = new Map([
    ['a', await openNode('a', server.url)],
    ['b', await openNode('b', server.url)],
  ]);
  const labels = new Map<string, number>();
  const [from, count] = [Number(options.from), Number(options.seeds)];
  for (let seed = from; seed < from + count; seed++) {
    const schedule = await playSeed(seed);
    if ((seed - from) % VERIFIED_EVERY === VERIFIED_EVERY - 1 || seed === from + count - 1) {
      const { faults } = await verifyDatabase(shared);
      for (const { problem } of faults) schedule.faults.add(problem);
      await server.vacuum();
    }
    for (const label of schedule.labels) labels.set(label, (labels.get(label) ?? 0) + 1);
    report(seed, schedule);
    if ([...schedule.faults].some((fault) => options.until !== 'off' && fault.includes(options.until))) break;
  }
  const missing = [...(count >= 100 ? LABELS : []), ...(count >= 1000 ? RARE_LABELS : [])].filter(
    (label) => !labels.has(label),
  );
  console.log(
    `${count} seeds: ${[...labels]
      .sort()
      .map(([label, seeds]) => `${label} ${seeds}`)
      .join(', ')}`,
  );
  if (!isFailed && missing.length > 0) fail(`No seed has shown: ${missing.join(', ')}`);

  async function playSeed(seed: number): Promise<Schedule> {
    const random = makeRandom(seed);
    // A new day, so that nothing of the last seed is due.
    setVirtualNow(Math.ceil((virtualNow() + 1) / DAY) * DAY);
    await server!.setNow(virtualNow());
    const world = await tasks.run({ life: makeLife(SETUP, 0), name: SETUP }, () => makeWorld(shared.db));
    let isOver = false;
    const { outside, received } = makeOutside(random, () => schedule);
    const how = { ...outside, removes: random.isTrue(0.3) };
    const start = (node: string) => nodes.get(node)!.start(how);
    const { schedule, play } = makeSchedule({
      random,
      server: server!,
      start,
      isOver: () => isOver,
      isAtRest: () => isAtRest(shared.db),
    });
    for (const node of nodes.keys()) schedule.lives.set(node, start(node));
    const clients = startClients(seed, world, nodes, schedule);
    void clients.done.then(() => {
      isOver = true;
    });
    await play();
    for (const life of schedule.lives.values()) endLife(life);
    await cutOpenTransactions(server!);
    for (const problem of await findProblems(shared.db, world, clients, received)) schedule.faults.add(problem);
    return schedule;
  }
} finally {
  await server.remove();
}
process.exit(isFailed ? 1 : 0);

function report(seed: number, { trace, faults }: Schedule): void {
  if (options.trace === 'on') console.log(trace.map((line) => `${seed}| ${line}`).join('\n'));
  const digest = createHash('sha256').update(trace.join('\n')).digest('hex').slice(0, 12);
  if (options.trace !== 'off') console.log(`seed ${seed}: ${trace.length} steps, ${digest}`);
  if (faults.size === 0) return;
  fail(
    `Seed ${seed} fails:\n  ${[...faults].join('\n  ')}\nShow it again: npx node tests/schedules/main.ts --from ${seed} --seeds 1 --trace on`,
  );
}

function fail(text: string): void {
  isFailed = true;
  console.error(text);
}
