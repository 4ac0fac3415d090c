import { removeProcesses, type StartedService, startService } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { removeBenchDatabases } from './database.ts';
import { type Load, load } from './load.ts';
import { describeRun } from './page.ts';
import { givenFilledDatabase } from './stage.ts';
import { precise, type Table, toText, whole } from './table.ts';
import type { Tenants } from './tenants.ts';
import { watchDatabase } from './usage.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

/** Calls per second of several nodes, and of several workers of one node, on one database: `npm run bench:scaling`. */

const options = programOptions('npm run bench:scaling --', { seconds: '2', rounds: '3' });

/** How many nodes, and how many workers each. */
const SHAPES = [
  { nodes: 1, workers: 1 },
  { nodes: 2, workers: 1 },
  { nodes: 3, workers: 1 },
  { nodes: 1, workers: 2 },
];
const MEASURED = ['boards/list', 'boards/get', 'cards/create'];

const { settings, tenants } = await givenFilledDatabase({ isEmbedded: false });
try {
  const usage = await watchDatabase(settings.DATABASE_URL!);
  console.log(`${describeRun(usage.version)}\n`);
  const workloads = WORKLOADS.filter(({ name }) => MEASURED.includes(name));
  const rows: string[][] = [];
  for (const { nodes, workers } of SHAPES) {
    const more: Record<string, string> = workers > 1 ? { WORKERS: String(workers) } : {};
    const running = await Promise.all(Array.from({ length: nodes }, () => startService({ ...settings, ...more })));
    for (const workload of workloads) rows.push([`${nodes}`, `${workers}`, ...(await figures(workload, running))]);
    await Promise.all(running.map(({ stop }) => stop()));
  }
  console.log(toText(tableOf(rows)));
  await usage.stop();

  async function figures(workload: Workload, nodes: StartedService[]): Promise<string[]> {
    const rounds: { rate: number; p50: number; p99: number; database: number }[] = [];
    await callAll(workload, nodes, tenants, 1);
    for (let round = 0; round < Number(options.rounds); round++) {
      const before = await usage.cpuMilliseconds();
      const loads = await callAll(workload, nodes, tenants, Number(options.seconds));
      const calls = loads.reduce((sum, { count }) => sum + count, 0);
      rounds.push({
        rate: loads.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0),
        p50: Math.max(...loads.map(({ p50 }) => p50)),
        p99: Math.max(...loads.map(({ p99 }) => p99)),
        database: ((await usage.cpuMilliseconds()) - before) / calls,
      });
    }
    const { rate, p50, p99, database } = rounds.toSorted((one, other) => one.rate - other.rate)[rounds.length >> 1]!;
    return [workload.name, whole(rate), precise(p50, 1), precise(p99, 1), precise(database)];
  }
} finally {
  await removeProcesses();
  await removeBenchDatabases();
}

/** The same 32 users, spread over the nodes. */
function callAll(workload: Workload, nodes: StartedService[], tenants: Tenants, seconds: number): Promise<Load[]> {
  const requests = workload.requests('REST', tenants);
  return Promise.all(
    nodes.map(({ url }, node) =>
      load(
        url,
        requests.filter((_, at) => at % nodes.length === node),
        workload.status,
        seconds,
      ),
    ),
  );
}

function tableOf(rows: string[][]): Table {
  return {
    title: 'Nodes and workers',
    columns: ['nodes', 'workers', 'call', 'calls/s', 'p50 ms', 'p99 ms', 'PostgreSQL CPU ms'],
    rows,
    names: 3,
  };
}
