import { setTimeout as pause } from 'node:timers/promises';
import { load, median } from '../harness/load.ts';
import { givenDirectory, startAsScript } from '../harness/process.ts';
import { givenUsers, LIMITS, type Settings } from './programs.ts';
import type { Run } from './run.ts';
import { type Table, whole } from './table.ts';
import { residentMegabytes } from './usage.ts';
import type { Users } from './users.ts';
import { type Surface, statusOf, WORKLOADS } from './workloads.ts';

const MOST_ROUNDS = 3;
const SETTLE_MILLISECONDS = 1000;

/** How long the service takes to start, and its memory when idle and after load. */
export async function measureStarts({ rounds = MOST_ROUNDS, seconds = 1 }: Run): Promise<Table[]> {
  const server = await givenUsers();
  const embedded = await givenUsers({ isEmbedded: true });
  const kinds: Record<string, () => Promise<number[]>> = {
    'a new embedded database': async () => start({ ...LIMITS, DATA_DIR: await givenDirectory() }),
    'an embedded database': () => start(embedded.settings, (url) => useService(url, embedded.users, seconds)),
    'a PostgreSQL server': () => start(server.settings, (url) => useService(url, server.users, seconds)),
  };
  const starts = Object.keys(kinds).map((): number[][] => []);
  for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++)
    for (const [at, begin] of Object.values(kinds).entries()) starts[at]!.push(await begin());
  const middle = (at: number) =>
    starts[at]![0]!.map((_, figure) => whole(median(starts[at]!.map((figures) => figures[figure]!))));
  const rows = Object.keys(kinds).map((kind, at) => [kind, ...middle(at), ''].slice(0, 4));
  return [{ title: 'Start and memory', columns: ['on', 'answers after ms', 'memory MB', 'after some load'], rows }];
}

/** The milliseconds, and the memory in MB before and after its use. */
async function start(settings: Settings, use?: (url: string) => Promise<void>): Promise<number[]> {
  const begun = performance.now();
  const { url, pid, stop } = await startAsScript(settings);
  const { status } = await fetch(`${url}/health/ready`);
  if (status !== 200) throw new Error(`The service is not ready: ${status}.`);
  const figures = [performance.now() - begun];
  await pause(SETTLE_MILLISECONDS);
  figures.push(residentMegabytes(pid));
  if (use) {
    await use(url);
    figures.push(residentMegabytes(pid));
  }
  await stop();
  return figures;
}

/** Runs every workload over REST and RPC, with all users at once. */
async function useService(url: string, users: Users, seconds: number): Promise<void> {
  for (const workload of WORKLOADS)
    for (const surface of ['REST', 'RPC'] satisfies Surface[])
      await load(url, workload.requests(surface, users), statusOf(workload, surface), seconds);
}
