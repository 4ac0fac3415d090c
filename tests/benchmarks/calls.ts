import { type Load, load, median } from '../harness/load.ts';
import { startAsScript } from '../harness/process.ts';
import { givenUsers, isRival, type Programs, programOf, startRival, withPrograms } from './programs.ts';
import type { Run } from './run.ts';
import { percent, precise, type Table, whole } from './table.ts';
import { cpuMilliseconds } from './usage.ts';
import { callsIn, type Rival, type Surface, statusOf, WORKLOADS, type Workload } from './workloads.ts';

/** Calls per second of the service over its surfaces, compared with its rivals. */

export type Figures = {
  surface: Surface;
  callsPerSecond: number;
  /** Calls per second relative to the rivals that take part. */
  shares: [Rival, number][];
  p50: number;
  p99: number;
  nodeMilliseconds: number;
  /** NaN without a server to watch. */
  databaseMilliseconds: number;
};

export type MeasuredWorkload = { workload: Workload; figures: Figures[] };

type Measured = { surface: Surface; rounds: Load[]; nodeMilliseconds: number; databaseMilliseconds: number };

/** Until V8 has compiled the hot code. */
const WARM_SECONDS = 10;
/** The pool may have closed idle connections during the turns of the others. */
const RECONNECT_SECONDS = 0.2;

/** Measures the surfaces in turns, so that other load on the machine affects all. */
export async function measureWorkload(programs: Programs, workload: Workload, run: Run): Promise<MeasuredWorkload> {
  const { seconds = 1, rounds = 7 } = run;
  const all = workload.surfaces
    .filter((surface) => programOf(programs, surface))
    .map((surface): Measured => ({ surface, rounds: [], nodeMilliseconds: 0, databaseMilliseconds: 0 }));
  for (const { surface } of all) await send(programs, workload, surface, Math.min(WARM_SECONDS, 10 * seconds));
  for (let round = 0; round < rounds; round++)
    for (const measured of all) await measureRound(programs, workload, measured, seconds);
  return { workload, figures: all.map((one) => figuresOf(one, all)) };
}

async function measureRound(programs: Programs, workload: Workload, measured: Measured, seconds: number) {
  const { surface } = measured;
  await send(programs, workload, surface, RECONNECT_SECONDS);
  const { pid } = programOf(programs, surface)!;
  const databaseTime = async () => programs.usage?.cpuMilliseconds() ?? Number.NaN;
  const [nodeBefore, databaseBefore] = [cpuMilliseconds(pid), await databaseTime()];
  measured.rounds.push(await send(programs, workload, surface, seconds));
  measured.nodeMilliseconds += cpuMilliseconds(pid) - nodeBefore;
  measured.databaseMilliseconds += (await databaseTime()) - databaseBefore;
}

const send = (programs: Programs, workload: Workload, surface: Surface, seconds: number) =>
  load(
    programOf(programs, surface)!.url,
    workload.requests(surface, programs.users),
    statusOf(workload, surface),
    seconds,
  );

/** The medians of the rounds, and the CPU time per call over all of them. */
function figuresOf({ surface, rounds, nodeMilliseconds, databaseMilliseconds }: Measured, all: Measured[]): Figures {
  const calls = callsIn(surface);
  const count = calls * rounds.reduce((sum, round) => sum + round.count, 0);
  const perSecond = rounds.map((round) => calls * round.requestsPerSecond);
  // Round by round, since other work on the machine slows down whole rounds.
  const shareOf = (rival: Measured) => median(perSecond.map((each, at) => each / rival.rounds[at]!.requestsPerSecond));
  return {
    surface,
    callsPerSecond: median(perSecond),
    shares: all.flatMap((rival): Figures['shares'] =>
      isRival(rival.surface) ? [[rival.surface, shareOf(rival)]] : [],
    ),
    p50: median(rounds.map(({ p50 }) => p50)),
    p99: median(rounds.map(({ p99 }) => p99)),
    nodeMilliseconds: nodeMilliseconds / count,
    databaseMilliseconds: databaseMilliseconds / count,
  };
}

export function tableOf(title: string, measured: MeasuredWorkload[]): Table {
  const rivals = measured[0]?.figures[0]?.shares.map(([rival]) => rival) ?? [];
  const onServer = (cells: string[]) => (rivals.length > 0 ? cells : []);
  return {
    title,
    names: 2,
    columns: [
      ...['', 'over', 'calls/s', 'p50 ms', 'p99 ms', 'CPU ms: Node'],
      ...onServer(['PostgreSQL', ...rivals.map((rival, at) => (at === 0 ? `calls/s of ${rival}` : `of ${rival}`))]),
    ],
    rows: measured.flatMap(({ workload, figures }) =>
      figures.map((each, at) => [
        at === 0 ? workload.name : '',
        each.surface,
        whole(each.callsPerSecond),
        precise(each.p50, 1),
        precise(each.p99, 1),
        precise(each.nodeMilliseconds),
        ...onServer([precise(each.databaseMilliseconds), ...each.shares.map(([, share]) => percent(share))]),
      ]),
    ),
  };
}

/** After a restore or a bulk load: PostgreSQL collects statistics a minute later at the earliest. */
export const measureWithoutStatistics = (run: Run): Promise<Table[]> =>
  withPrograms(
    async (programs) => [
      tableOf('Without statistics in PostgreSQL', await all(programs, run, 'boards/list', 'boards/get')),
    ],
    {
      hasStatistics: false,
      before: run.before,
    },
  );

export const measureEmbedded = (run: Run): Promise<Table[]> =>
  withPrograms(
    async (programs) => [
      {
        ...tableOf('The embedded database', await all(programs, run, 'boards/list', 'cards/create')),
        note: 'With 8 users at once. The database runs inside the service, so its CPU time is included in that of Node.',
      },
    ],
    { isEmbedded: true },
  );

async function all(programs: Programs, run: Run, ...names: string[]): Promise<MeasuredWorkload[]> {
  const measured: MeasuredWorkload[] = [];
  for (const workload of WORKLOADS.filter(({ name }) => names.includes(name)))
    measured.push(await measureWorkload(programs, workload, run));
  return measured;
}

const MOST_STARTS = 5;

/** Calls per second right after a start, when nothing is compiled and no connection is open: services restart. */
export async function measureFirstSeconds({ seconds = 3, rounds = MOST_STARTS, before }: Run): Promise<Table[]> {
  const { settings, users } = await givenUsers();
  const surfaces: Surface[] = ['lean floor', ...(before ? (['before'] as const) : []), 'REST'];
  const rows: string[][] = [];
  for (const workload of WORKLOADS.filter(({ name }) => ['boards/list', 'cards/create'].includes(name))) {
    const speeds = surfaces.map((): number[] => []);
    for (let round = 0; round < Math.min(rounds, MOST_STARTS); round++)
      for (const [at, surface] of surfaces.entries()) {
        const { url, stop } = await (isRival(surface)
          ? startRival(surface, settings, before)
          : startAsScript(settings));
        speeds[at]!.push(
          (await load(url, workload.requests(surface, users), workload.status, seconds)).requestsPerSecond,
        );
        await stop();
      }
    for (const [at, speed] of speeds.entries()) {
      const share = median(speed.map((each, round) => each / speeds[0]![round]!));
      rows.push([at === 0 ? workload.name : '', surfaces[at]!, whole(median(speed)), percent(share)]);
    }
  }
  const columns = ['', 'over', 'calls/s', 'of lean floor'];
  return [{ title: `The first ${seconds} seconds after a start`, names: 2, columns, rows }];
}
