import { type Load, load } from '../harness/load.ts';
import { type StartedService, startService } from '../harness/process.ts';
import { givenUsers } from './programs.ts';
import type { Run } from './run.ts';
import { precise, type Table, whole } from './table.ts';
import { type DatabaseUsage, watchDatabase } from './usage.ts';
import type { Users } from './users.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

/** How many nodes, and how many workers each. */
const SHAPES = [
  { nodes: 1, workers: 1 },
  { nodes: 2, workers: 1 },
  { nodes: 3, workers: 1 },
  { nodes: 1, workers: 2 },
];
const MEASURED = ['boards/list', 'boards/get', 'cards/create'];

/** Calls per second of several nodes, and of several workers of one node, on one database. */
export async function measureScaling({ seconds = 2, rounds = 3 }: Run): Promise<Table[]> {
  const { settings, users } = await givenUsers();
  const usage = await watchDatabase(settings.DATABASE_URL!);
  const rows: string[][] = [];
  for (const { nodes, workers } of SHAPES) {
    const more: Record<string, string> = workers > 1 ? { WORKERS: String(workers) } : {};
    const running = await Promise.all(Array.from({ length: nodes }, () => startService({ ...settings, ...more })));
    for (const workload of WORKLOADS.filter(({ name }) => MEASURED.includes(name))) {
      const call = (seconds: number) => callAll(workload, running, users, seconds);
      rows.push([`${nodes}`, `${workers}`, workload.name, ...(await figuresOf(call, usage, { seconds, rounds }))]);
    }
    await Promise.all(running.map(({ stop }) => stop()));
  }
  await usage.stop();
  const columns = ['nodes', 'workers', 'call', 'calls/s', 'p50 ms', 'p99 ms', 'PostgreSQL CPU ms'];
  return [{ title: 'Nodes and workers', columns, rows, names: 3 }];
}

/** The figures of one round: the one with the median rate. */
async function figuresOf(
  call: (seconds: number) => Promise<Load[]>,
  usage: DatabaseUsage,
  { seconds, rounds }: { seconds: number; rounds: number },
): Promise<string[]> {
  const all: { rate: number; cells: string[] }[] = [];
  await call(1);
  for (let round = 0; round < rounds; round++) {
    const before = await usage.cpuMilliseconds();
    const loads = await call(seconds);
    const database = (await usage.cpuMilliseconds()) - before;
    const calls = loads.reduce((sum, { count }) => sum + count, 0);
    const rate = loads.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
    const most = (figure: 'p50' | 'p99') => precise(Math.max(...loads.map((load) => load[figure])), 1);
    all.push({ rate, cells: [whole(rate), most('p50'), most('p99'), precise(database / calls)] });
  }
  return all.toSorted((one, other) => one.rate - other.rate)[rounds >> 1]!.cells;
}

/** The same 32 users, spread over the nodes. */
function callAll(workload: Workload, nodes: StartedService[], users: Users, seconds: number): Promise<Load[]> {
  const requests = workload.requests('REST', users);
  const requestsOf = (node: number) => requests.filter((_, at) => at % nodes.length === node);
  return Promise.all(nodes.map(({ url }, node) => load(url, requestsOf(node), workload.status, seconds)));
}
