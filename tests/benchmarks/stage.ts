import { runToEnd, type StartedService, startProgram, startService } from '../harness/process.ts';
import { givenBenchDatabase } from './database.ts';
import { addTenants, type Tenants } from './tenants.ts';
import { type DatabaseUsage, watchDatabase } from './usage.ts';
import type { Surface } from './workloads.ts';

/** Who is called, by whom. */
export type Stage = { floor: StartedService; service: StartedService; usage: DatabaseUsage; tenants: Tenants };

export const CONNECTIONS = 32;

/** Limits and token checks are on, as in production; nobody reaches the limit. */
export const SETTINGS = { RATE_LIMIT_PER_MINUTE: '100000000', LOG_LEVEL: 'warn' };

/** The service and the floor on one fresh database, each as a process of its own. */
export async function onStage<Result>(
  work: (stage: Stage) => Promise<Result>,
  more: Record<string, string> = {},
): Promise<Result> {
  const { settings: database, remove } = await givenBenchDatabase({ isEmbedded: false });
  const settings = { ...database, ...SETTINGS };
  await runToEnd(['server/cli/main.ts', 'demo'], settings);
  const tenants = await addTenants(settings, CONNECTIONS);
  const usage = await watchDatabase(settings.DATABASE_URL!);
  const floor = await startProgram(['tests/benchmarks/floor.ts'], { ...settings, ...more });
  const service = await startService({ ...settings, ...more });
  try {
    return await work({ floor, service, usage, tenants });
  } finally {
    await Promise.all([floor.stop(), service.stop(), usage.close()]);
    await remove();
  }
}

export const programOf = ({ floor, service }: Stage, surface: Surface) => (surface === 'floor' ? floor : service);
