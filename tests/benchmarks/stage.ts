import { runToEnd, type StartedService, startAsScript, startProgram } from '../harness/process.ts';
import { givenBenchDatabase } from './database.ts';
import { addTenants, type Tenants } from './tenants.ts';
import { type DatabaseUsage, watchDatabase } from './usage.ts';
import type { Baseline, Surface } from './workloads.ts';

/** What a benchmark runs on; with the embedded database there are no baselines and no database server to watch. */
export type Stage = {
  baselines: Record<Baseline, StartedService> | undefined;
  service: StartedService;
  usage: DatabaseUsage | undefined;
  tenants: Tenants;
};

/** Starts the service and the baselines as separate processes on one new database, or only the service on an embedded one. */
export async function onStage<Result>(
  work: (stage: Stage) => Promise<Result>,
  { isEmbedded = false, hasStatistics = true, more = {} as Record<string, string> } = {},
): Promise<Result> {
  const { settings, tenants, remove } = await givenFilledDatabase({ isEmbedded, hasStatistics });
  try {
    const service = await startAsScript({ ...settings, ...more });
    const baselines = isEmbedded ? undefined : await startBaselines({ ...settings, ...more });
    const usage = isEmbedded ? undefined : await watchDatabase(settings.DATABASE_URL!);
    const result = await work({ baselines, service, usage, tenants });
    await Promise.all([...Object.values(baselines ?? {}), service, usage].map((each) => each?.stop()));
    return result;
  } finally {
    await remove();
  }
}

const FLOOR = 'tests/benchmarks/floor.ts';
export const BASELINES: Record<Baseline, [string, ...string[]]> = {
  floor: [FLOOR, 'ours'],
  'lean floor': [FLOOR, 'lean'],
  'without events': [FLOOR, 'lean, without events'],
  Fastify: ['tests/benchmarks/plainFastify.ts'],
};

async function startBaselines(settings: Record<string, string>): Promise<Record<Baseline, StartedService>> {
  const started: Partial<Record<Baseline, StartedService>> = {};
  for (const name of Object.keys(BASELINES) as Baseline[])
    started[name] = await startProgram(BASELINES[name], settings);
  return started as Record<Baseline, StartedService>;
}

/** Fewer for the embedded database, which is for small teams. */
const connectionsTo = ({ isEmbedded }: { isEmbedded: boolean }) => (isEmbedded ? 8 : 32);

type Filling = { isEmbedded: boolean; hasStatistics?: boolean };

/** The rate limit is on, as in production, but too high to be reached. */
export const SETTINGS = { RATE_LIMIT_PER_MINUTE: '100000000', LOG_LEVEL: 'warn' };

export async function givenFilledDatabase({ isEmbedded, hasStatistics = true }: Filling) {
  const { settings: database, remove } = await givenBenchDatabase({ isEmbedded });
  const settings = { ...database, ...SETTINGS };
  try {
    await runToEnd(['server/cli/deckhand.js', 'demo'], settings);
    const tenants = await addTenants(settings, connectionsTo({ isEmbedded }), { hasStatistics });
    return { settings, remove, tenants };
  } catch (error) {
    await remove();
    throw error;
  }
}

export const programOf = ({ baselines, service }: Stage, surface: Surface) =>
  isBaseline(surface) ? baselines![surface] : service;

export const isBaseline = (surface: Surface): surface is Baseline => surface in BASELINES;
