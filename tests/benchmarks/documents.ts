import { writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import type { MeasuredWorkload } from './calls.ts';
import { toChart } from './chart.ts';
import { type Table, toMarkdown } from './table.ts';

const DOCS = join(import.meta.dirname, '../../docs');

/** The machine and versions of the run: absolute figures apply to this machine only, ratios to others too. */
export function describeRun(server: string): string {
  const all = cpus();
  const date = new Date().toISOString().slice(0, 10);
  const others = loadBefore > all.length / 4 ? `, busy with other work (load ${loadBefore.toFixed(1)})` : '';
  return `${all.length} × ${all[0]!.model}, Node ${process.versions.node}, ${server}, ${date}${others}`;
}

/** The load of the machine before the benchmark. */
const [loadBefore = 0] = loadavg();

/** Writes docs/benchmark.md and its chart. */
export async function writePage(run: string, measured: MeasuredWorkload[], tables: Table[]): Promise<void> {
  await writeFile(join(DOCS, 'benchmark.svg'), toChart(measured, run));
  await writeFile(join(DOCS, 'benchmark.md'), [INTRODUCTION, `${run}.`, '', ...tables.map(toMarkdown)].join('\n'));
}

/** Writes docs/growth.md. */
export const writeGrowth = (run: string, tables: Table[]): Promise<void> =>
  writeFile(join(DOCS, 'growth.md'), [GROWTH, `${run}.`, '', ...tables.map(toMarkdown)].join('\n'));

const GROWTH = `# Growth

\`npm run bench -- --only growth\` measures these figures and writes this page: how the cost of a call grows with what is stored. One user
sends one call after the other; CPU ms is PostgreSQL's CPU time for a call.

With what others store, every operation grows with the depth of the indexes only: the logarithm of the number of rows. With the
boards of the own project, \`boards.list\` grows with what it returns, and the others do not grow.
`;

const INTRODUCTION = `# Benchmark

\`npm run bench\` measures these figures and writes this page.

![Calls per second and CPU time per call](benchmark.svg)

Two rivals give byte-identical answers to the same calls (a test compares them): the **lean floor**, written by hand with
\`node:http\` and \`pg\`, and **Fastify**, a plain Fastify server with \`pg\`, its body parser, hooks and response schemas. Both
have the same token check, the same lookup of the caller, and the least SQL that gives the documented fields and keeps to the
documented rules. They have no other checks, limits, logs, metrics or document. Writes insert their event. \`--before\` compares
with an earlier version of the service, too.

The service looks up the caller and does the work in one statement, where the rivals need two: it remembers callers, and the
statement confirms them. Service and rivals run as separate processes with 10 connections each to the same database, and take
turns of one second, after ten seconds each to warm up. The last columns are calls per second as a share of each rival,
compared round by round.

32 users send one call after the other, each on a keep-alive connection. For \`authenticate\` there are 8 users, since the
service checks two passwords at a time and has a short queue for them; the rivals verify passwords with argon2, too.
\`RPC × 10\` is a batch of ten calls, counted as ten. Figures are medians of the rounds; CPU time is per call. The load generator
runs on the same machine, so an idle machine with more cores gives higher figures.

Three tables show how much one user slows down others: by loading a board of 5,000 cards, by sending 200 calls at once, and,
for the health check that decides whether the service is restarted, by loading that board in a loop.
`;
