import { type Load, load } from './load.ts';
import { programOf, type Stage } from './stage.ts';
import { median, percent, precise, type Table, whole } from './table.ts';
import { cpuMilliseconds } from './usage.ts';
import { callsIn, type Surface, statusOf, type Workload } from './workloads.ts';

export type Length = { rounds: number; seconds: number };
export type Measured = { surface: Surface; rounds: Load[]; nodeMilliseconds: number; databaseMilliseconds: number };

/** The surfaces in turns, several times each. */
export async function measure(stage: Stage, workload: Workload, { rounds, seconds }: Length): Promise<Measured[]> {
  const all = workload.surfaces.map(
    (surface): Measured => ({ surface, rounds: [], nodeMilliseconds: 0, databaseMilliseconds: 0 }),
  );
  for (const { surface } of all) await send(stage, workload, surface, WARM_SECONDS);
  for (let round = 0; round < rounds; round++)
    for (const measured of all) await measureRound(stage, workload, measured, seconds);
  return all;
}
const WARM_SECONDS = 1.5;
/** The pool may have closed its connections while the others had their turns. */
const RECONNECT_SECONDS = 0.2;

async function measureRound(stage: Stage, workload: Workload, measured: Measured, seconds: number): Promise<void> {
  await send(stage, workload, measured.surface, RECONNECT_SECONDS);
  const { pid } = programOf(stage, measured.surface);
  const nodeBefore = cpuMilliseconds(pid);
  const databaseBefore = await stage.usage.cpuMilliseconds();
  measured.rounds.push(await send(stage, workload, measured.surface, seconds));
  measured.nodeMilliseconds += cpuMilliseconds(pid) - nodeBefore;
  measured.databaseMilliseconds += (await stage.usage.cpuMilliseconds())! - databaseBefore!;
}

const send = (stage: Stage, workload: Workload, surface: Surface, seconds: number) =>
  load(programOf(stage, surface).url, workload.requests(surface, stage.tenants), statusOf(workload, surface), seconds);

export function tableOf({ name }: Workload, all: Measured[]): Table {
  const [floor] = all;
  return {
    title: name,
    columns: ['', 'calls/s', 'of the floor', 'p50 ms', 'p99 ms', 'Node ms/call', 'PostgreSQL ms/call'],
    rows: all.map(({ surface, rounds, nodeMilliseconds, databaseMilliseconds }) => {
      const calls = callsIn(surface);
      const count = calls * rounds.reduce((sum, round) => sum + round.count, 0);
      const shares = rounds.map(
        (round, at) => (calls * round.requestsPerSecond) / floor!.rounds[at]!.requestsPerSecond,
      );
      return [
        surface,
        whole(calls * median(rounds.map((round) => round.requestsPerSecond))),
        percent(median(shares)),
        precise(median(rounds.map((round) => round.p50)), 1),
        precise(median(rounds.map((round) => round.p99)), 1),
        precise(nodeMilliseconds / count, 3),
        precise(databaseMilliseconds / count, 3),
      ];
    }),
  };
}
