import { setTimeout as pause } from 'node:timers/promises';
import { givenDirectory, startAsScript } from '../harness/process.ts';
import { load } from './load.ts';
import { givenFilledDatabase, SETTINGS } from './stage.ts';
import { median, type Table, whole } from './table.ts';
import type { Tenants } from './tenants.ts';
import type { Length } from './throughput.ts';
import { residentMegabytes } from './usage.ts';
import { type Surface, statusOf, WORKLOADS } from './workloads.ts';

type Start = { milliseconds: number; idleMegabytes: number; loadedMegabytes: number | undefined };

const MOST_ROUNDS = 3;
const SETTLE_MILLISECONDS = 1000;

/** How long the service takes to start, and its memory when idle and after load. */
export async function measureStarts({ rounds, seconds }: Length): Promise<Table> {
  const server = await givenFilledDatabase({ isEmbedded: false });
  const embedded = await givenFilledDatabase({ isEmbedded: true });
  try {
    const kinds: Record<string, () => Promise<Start>> = {
      'a new embedded database': async () => start({ ...SETTINGS, DATA_DIR: await givenDirectory() }),
      'an embedded database': () => start(embedded.settings, (url) => useService(url, embedded.tenants, seconds)),
      'a PostgreSQL server': () => start(server.settings, (url) => useService(url, server.tenants, seconds)),
    };
    const starts = Object.keys(kinds).map((): Start[] => []);
    for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++)
      for (const [at, begin] of Object.values(kinds).entries()) starts[at]!.push(await begin());

    const middle = (at: number, figure: keyof Start) => median(starts[at]!.map((each) => each[figure] ?? Number.NaN));
    return {
      title: 'Start and memory',
      columns: ['on', 'answers after ms', 'memory MB', 'after some load'],
      rows: Object.keys(kinds).map((kind, at) => [
        kind,
        whole(middle(at, 'milliseconds')),
        whole(middle(at, 'idleMegabytes')),
        Number.isNaN(middle(at, 'loadedMegabytes')) ? '' : whole(middle(at, 'loadedMegabytes')),
      ]),
    };
  } finally {
    await server.remove();
  }
}

async function start(settings: Record<string, string>, use?: (url: string) => Promise<void>): Promise<Start> {
  const begun = performance.now();
  const { url, pid, stop } = await startAsScript(settings);
  const { status } = await fetch(`${url}/health/ready`);
  if (status !== 200) throw new Error(`The service is not ready: ${status}.`);
  const milliseconds = performance.now() - begun;
  await pause(SETTLE_MILLISECONDS);
  const idleMegabytes = residentMegabytes(pid);

  await use?.(url);
  const loadedMegabytes = use && residentMegabytes(pid);
  await stop();
  return { milliseconds, idleMegabytes, loadedMegabytes };
}

/** Runs every workload over REST and RPC, with all users at once. */
async function useService(url: string, tenants: Tenants, seconds: number): Promise<void> {
  for (const workload of WORKLOADS) {
    for (const surface of ['REST', 'RPC'] satisfies Surface[])
      await load(url, workload.requests(surface, tenants), statusOf(workload, surface), seconds);
  }
}
