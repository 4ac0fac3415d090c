import { type Load, load } from './load.ts';
import { isBaseline, onStage, programOf, type Stage } from './stage.ts';
import { median, percent, precise, type Table, whole } from './table.ts';
import { cpuMilliseconds } from './usage.ts';
import { type Baseline, callsIn, type Surface, statusOf, WORKLOADS, type Workload } from './workloads.ts';

export type Length = { rounds: number; seconds: number };
export type Measured = {
  surface: Surface;
  rounds: Load[];
  nodeMilliseconds: number;
  /** NaN without a server to watch. */
  databaseMilliseconds: number;
};

/** Measures the surfaces in turns, several rounds each. */
export async function measure(stage: Stage, workload: Workload, { rounds, seconds }: Length): Promise<Measured[]> {
  const all = workload.surfaces
    .filter((surface) => !isBaseline(surface) || stage.baselines)
    .map((surface): Measured => ({ surface, rounds: [], nodeMilliseconds: 0, databaseMilliseconds: 0 }));
  for (const { surface } of all) await send(stage, workload, surface, WARM_SECONDS);
  for (let round = 0; round < rounds; round++)
    for (const measured of all) await measureRound(stage, workload, measured, seconds);
  return all;
}
/** Until V8 has compiled the hot code. */
const WARM_SECONDS = 10;
/** The pool may have closed idle connections during the turns of the others. */
const RECONNECT_SECONDS = 0.2;

async function measureRound(stage: Stage, workload: Workload, measured: Measured, seconds: number): Promise<void> {
  await send(stage, workload, measured.surface, RECONNECT_SECONDS);
  const { pid } = programOf(stage, measured.surface);
  const databaseTime = async () => stage.usage?.cpuMilliseconds() ?? Number.NaN;
  const nodeBefore = cpuMilliseconds(pid);
  const databaseBefore = await databaseTime();
  measured.rounds.push(await send(stage, workload, measured.surface, seconds));
  measured.nodeMilliseconds += cpuMilliseconds(pid) - nodeBefore;
  measured.databaseMilliseconds += (await databaseTime()) - databaseBefore;
}

const send = (stage: Stage, workload: Workload, surface: Surface, seconds: number) =>
  load(programOf(stage, surface).url, workload.requests(surface, stage.tenants), statusOf(workload, surface), seconds);

/** What the service is compared with. */
const COMPARED = ['floor', 'lean floor', 'Fastify'] as const satisfies Baseline[];
type Compared = (typeof COMPARED)[number];

export type Figures = {
  surface: Surface;
  callsPerSecond: number;
  /** Calls per second relative to the baselines; undefined without them. */
  shares: Record<Compared, number> | undefined;
  p50: number;
  p99: number;
  nodeMilliseconds: number;
  databaseMilliseconds: number;
};

/** The medians of the rounds, and the CPU time per call over all of them. */
export function figuresOf(all: Measured[]): Figures[] {
  const baselines = COMPARED.map((name) => [name, all.find(({ surface }) => surface === name)] as const);
  return all.map(({ surface, rounds, nodeMilliseconds, databaseMilliseconds }) => {
    const calls = callsIn(surface);
    const count = calls * rounds.reduce((sum, round) => sum + round.count, 0);
    const perSecond = rounds.map((round) => calls * round.requestsPerSecond);
    return {
      surface,
      callsPerSecond: median(perSecond),
      shares: baselines.every(([, baseline]) => baseline)
        ? (Object.fromEntries(
            baselines.map(([name, baseline]) => [name, shareOf(perSecond, baseline!)]),
          ) as Figures['shares'])
        : undefined,
      p50: median(rounds.map(({ p50 }) => p50)),
      p99: median(rounds.map(({ p99 }) => p99)),
      nodeMilliseconds: nodeMilliseconds / count,
      databaseMilliseconds: databaseMilliseconds / count,
    };
  });
}

/** Round by round, since other work on the machine slows down whole rounds. */
const shareOf = (perSecond: number[], { rounds }: Measured) =>
  median(perSecond.map((calls, at) => calls / rounds[at]!.requestsPerSecond));

export type MeasuredWorkload = { workload: Workload; figures: Figures[] };

export function tableOf(title: string, measured: MeasuredWorkload[], { hasBaselines = true } = {}): Table {
  const onServer = (cells: string[]) => (hasBaselines ? cells : []);
  return {
    title,
    names: 2,
    columns: [
      ...['', 'over', 'calls/s', 'p50 ms', 'p99 ms', 'CPU ms: Node'],
      ...onServer(['PostgreSQL', 'calls/s of the floor', 'of the lean one', 'of Fastify']),
    ],
    rows: measured.flatMap(({ workload, figures }) =>
      figures.map((each, at) => [
        at === 0 ? workload.name : '',
        each.surface,
        whole(each.callsPerSecond),
        precise(each.p50, 1),
        precise(each.p99, 1),
        precise(each.nodeMilliseconds),
        ...onServer([precise(each.databaseMilliseconds), ...Object.values(each.shares ?? {}).map(percent)]),
      ]),
    ),
  };
}

/** After a restore or a bulk load: PostgreSQL collects statistics a minute later at the earliest. */
export const measureWithoutStatistics = (length: Length): Promise<Table> =>
  onStage(
    async (stage) =>
      tableOf('Without statistics in PostgreSQL', await measureAll(stage, ['boards/list', 'boards/get'], length)),
    { hasStatistics: false },
  );

export const measureEmbedded = (length: Length): Promise<Table> =>
  onStage(
    async (stage) => ({
      ...tableOf('The embedded database', await measureAll(stage, ['boards/list', 'cards/create'], length), {
        hasBaselines: false,
      }),
      note: 'With 8 users at once. The database runs inside the service, so its CPU time is included in that of Node.',
    }),
    { isEmbedded: true },
  );

async function measureAll(stage: Stage, names: string[], length: Length): Promise<MeasuredWorkload[]> {
  const measured: MeasuredWorkload[] = [];
  for (const workload of WORKLOADS.filter(({ name }) => names.includes(name)))
    measured.push({ workload, figures: figuresOf(await measure(stage, workload, length)) });
  return measured;
}
