import { removeProcesses } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { removeBenchDatabases } from './database.ts';
import { measureFirstSeconds } from './firstSeconds.ts';
import { measureLargeBoard } from './largeBoard.ts';
import { measureBurst, measureHealth } from './neighbours.ts';
import { describeRun, writePage } from './page.ts';
import { onStage } from './stage.ts';
import { measureStarts } from './starts.ts';
import { measureTemplates } from './sync.ts';
import { type Table, toText } from './table.ts';
import {
  figuresOf,
  type Length,
  type MeasuredWorkload,
  measure,
  measureEmbedded,
  measureWithoutStatistics,
  tableOf,
} from './throughput.ts';
import { WORKLOADS } from './workloads.ts';

/**
 * What a request costs, compared with the same on `node:http` (`floor.ts`) and on Fastify (`plainFastify.ts`): `npm run bench`. They run
 * as separate processes on one new database and are measured in turns, so that other load on the machine affects all.
 * Without `--only` the figures are written to docs/benchmark.md.
 */

const OTHERS: Record<string, (length: Length) => Promise<Table>> = {
  'first-seconds': measureFirstSeconds,
  'without-statistics': measureWithoutStatistics,
  'large-board': measureLargeBoard,
  burst: measureBurst,
  health: measureHealth,
  embedded: measureEmbedded,
  templates: measureTemplates,
  starts: measureStarts,
};
const PARTS = [...WORKLOADS.map(({ name }) => name), ...Object.keys(OTHERS)];

const options = programOptions('npm run bench --', { only: '', seconds: '1', rounds: '7' });
const length = { seconds: Number(options.seconds), rounds: Number(options.rounds) };
const chosen = new Set(options.only ? options.only.split(',') : PARTS);
for (const name of chosen) {
  if (!PARTS.includes(name)) throw new Error(`--only: unknown part ${name}; use ${PARTS.join(', ')}.`);
}

let interrupted: Promise<never> | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    interrupted = cleanUp().then(() => process.exit(130));
  });
}

try {
  const measured: MeasuredWorkload[] = [];
  const tables: Table[] = [];
  let run = '';
  const workloads = WORKLOADS.filter(({ name }) => chosen.has(name));
  if (workloads.length > 0) {
    await onStage(async (stage) => {
      run = describeRun(stage.usage!.version);
      console.log(`${run}\n`);
      for (const workload of workloads) {
        const figures = figuresOf(await measure(stage, workload, length));
        measured.push({ workload, figures });
        console.log(toText(tableOf(workload.name, [{ workload, figures }])));
      }
    });
    tables.push(tableOf('Calls', measured));
  }
  for (const [name, measurePart] of Object.entries(OTHERS)) {
    if (!chosen.has(name)) continue;
    const table = await measurePart(length);
    tables.push(table);
    console.log(toText(table));
  }
  if (options.only === '') await writePage(run, measured, tables);
  await cleanUp();
} catch (error) {
  await (interrupted ?? cleanUp());
  throw error;
}

async function cleanUp() {
  await removeProcesses();
  await removeBenchDatabases();
}
