import { writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { toChart } from './chart.ts';
import { type Table, toMarkdown } from './table.ts';
import type { MeasuredWorkload } from './throughput.ts';

const DOCS = join(import.meta.dirname, '../../docs');

/** What the figures are of: they hold for this machine alone, their proportions for others too. */
export function describeRun(postgresVersion: string): string {
  const all = cpus();
  const server = postgresVersion.split(' ', 1)[0];
  const date = new Date().toISOString().slice(0, 10);
  const others = loadBefore > all.length / 4 ? `, busy with other work (load ${loadBefore.toFixed(1)})` : '';
  return `${all.length} × ${all[0]!.model}, Node ${process.versions.node}, PostgreSQL ${server}, ${date}${others}`;
}

/** Before anything is measured. */
const [loadBefore = 0] = loadavg();

/** Writes docs/benchmark.md and its chart. */
export async function writePage(run: string, measured: MeasuredWorkload[], tables: Table[]): Promise<void> {
  await writeFile(join(DOCS, 'benchmark.svg'), toChart(measured, run));
  await writeFile(join(DOCS, 'benchmark.md'), [INTRODUCTION, `${run}.`, '', ...tables.map(toMarkdown)].join('\n'));
}

const INTRODUCTION = `# Benchmark

\`npm run bench\` measures, and writes this page.

![Calls a second and CPU time of each call](benchmark.svg)

The **floor** is what these calls cost when they are written by hand: \`node:http\`, \`pg\` with prepared statements, the same
check of the token, the same look-up of the caller, the same statements, the same answers byte for byte (a test compares
them). It has no other checks, no limits, logs, metrics or document. Service and floor are processes of their own, with 10
connections each to the same database, and are measured in turns of a second. 32 users send one call after the other, each on
a kept connection; 8 of them sign in, since the service checks two passwords at a time and lets few wait, and the floor
checks them with argon2 as well. \`RPC × 10\` is ten calls in one batch, counted as ten. Figures are medians of the rounds, CPU time
is that of one call. What sends the calls runs on the same machine, so that a quiet one with more cores answers more.
`;
