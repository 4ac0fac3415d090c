import { writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { toChart } from './chart.ts';
import { type Table, toMarkdown } from './table.ts';
import type { MeasuredWorkload } from './throughput.ts';

const DOCS = join(import.meta.dirname, '../../docs');

/** The machine and versions of the run: absolute figures apply to this machine only, ratios to others too. */
export function describeRun(postgresVersion: string): string {
  const all = cpus();
  const server = postgresVersion.split(' ', 1)[0];
  const date = new Date().toISOString().slice(0, 10);
  const others = loadBefore > all.length / 4 ? `, busy with other work (load ${loadBefore.toFixed(1)})` : '';
  return `${all.length} × ${all[0]!.model}, Node ${process.versions.node}, PostgreSQL ${server}, ${date}${others}`;
}

/** The load of the machine before the benchmark. */
const [loadBefore = 0] = loadavg();

/** Writes docs/benchmark.md and its chart. */
export async function writePage(run: string, measured: MeasuredWorkload[], tables: Table[]): Promise<void> {
  await writeFile(join(DOCS, 'benchmark.svg'), toChart(measured, run));
  await writeFile(join(DOCS, 'benchmark.md'), [INTRODUCTION, `${run}.`, '', ...tables.map(toMarkdown)].join('\n'));
}

const INTRODUCTION = `# Benchmark

\`npm run bench\` measures these figures and writes this page.

![Calls per second and CPU time per call](benchmark.svg)

Two baselines give byte-identical answers to the same calls (a test compares them): the **floor**, written by hand with
\`node:http\` and \`pg\`, and **Fastify**, a plain Fastify server with \`pg\`, its body parser, hooks and response schemas. Both
have the same token check, the same lookup of the caller and the same prepared statements, but no other checks, limits, logs,
metrics or document. Service and baselines run as separate processes with 10 connections each to the same database, and take
turns of one second. The last two columns are calls per second as a share of each baseline, compared round by round.

32 users send one call after the other, each on a keep-alive connection. For \`authenticate\` there are 8 users, since the
service checks two passwords at a time and has a short queue for them; the baselines verify passwords with argon2, too.
\`RPC × 10\` is a batch of ten calls, counted as ten. Figures are medians of the rounds; CPU time is per call. The load generator
runs on the same machine, so an idle machine with more cores gives higher figures.

Three tables show how much one user slows down others: by loading a board of 5,000 cards, by sending 200 calls at once, and,
for the health check that decides whether the service is restarted, by loading that board in a loop.
`;
