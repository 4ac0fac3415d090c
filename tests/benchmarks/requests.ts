import { parseArgs } from 'node:util';
import { removeProcesses, runToEnd, startProgram, startService } from '../harness/process.ts';
import { givenBenchDatabase } from './database.ts';
import { toText } from './table.ts';
import { addTenants } from './tenants.ts';
import { measure, type Stage, tableOf } from './throughput.ts';
import { watchDatabase } from './usage.ts';
import { WORKLOADS } from './workloads.ts';

/**
 * What a request costs, against the same written by hand on `node:http` and `pg` (`floor.ts`): `npm run bench`. Both run as
 * processes of their own on one fresh database, and are measured in turns, so that what else the machine does hits both.
 */

const CONNECTIONS = 32;
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: WORKLOADS.map(({ name }) => name).join() },
    seconds: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '7' },
  },
});
const length = { seconds: Number(options.seconds), rounds: Number(options.rounds) };
const chosen = options.only.split(',').map((name) => {
  const found = WORKLOADS.find((workload) => workload.name === name);
  if (found) return found;
  throw new Error(`--only: ${name} is none of ${WORKLOADS.map((workload) => workload.name).join(', ')}.`);
});

const { settings: database, remove } = await givenBenchDatabase();
const settings = { ...database, RATE_LIMIT_PER_MINUTE: '100000000', LOG_LEVEL: 'warn' } as Record<string, string>;
try {
  await runToEnd(['server/cli/main.ts', 'demo'], settings);
  const stage: Stage = {
    floor: await startProgram(['tests/benchmarks/floor.ts'], settings),
    service: await startService(settings),
    usage: await watchDatabase(settings.DATABASE_URL!),
    tenants: await addTenants(settings.DATABASE_URL!, settings.JWT_SECRET!, CONNECTIONS),
  };
  for (const workload of chosen) console.log(toText(tableOf(workload, await measure(stage, workload, length))));
  await stage.usage.close();
} finally {
  await removeProcesses();
  await remove();
}
