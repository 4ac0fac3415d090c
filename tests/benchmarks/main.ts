import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { givenCheckout } from '../faults/oldVersion.ts';
import { removeProcesses } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { findTestServer } from '../harness/server.ts';
import { measureBurst, measureHealth } from './beside.ts';
import { measurePage } from './browser.ts';
import {
  type MeasuredWorkload,
  measureEmbedded,
  measureFirstSeconds,
  measureWithoutStatistics,
  measureWorkload,
  tableOf,
} from './calls.ts';
import { describeRun, writeGrowth, writePage } from './documents.ts';
import { measureEventLoop } from './eventLoop.ts';
import { measureEvents } from './events.ts';
import { measureSearch, measureSignIn } from './floods.ts';
import { measureGrowth } from './growth.ts';
import { measureLargeBoard } from './largeBoard.ts';
import { withPrograms } from './programs.ts';
import { measureReset } from './reset.ts';
import { measureRollouts } from './rollouts.ts';
import type { Case, Run } from './run.ts';
import { measureScaling } from './scaling.ts';
import { measureStarts } from './starts.ts';
import { toText } from './table.ts';
import { measureSync, measureTemplates } from './templates.ts';
import { serverVersion } from './usage.ts';
import { measureWebhooks } from './webhooks.ts';
import { WORKLOADS } from './workloads.ts';

/**
 * What the service costs: `npm run bench`. Its rivals are a server written by hand (`leanFloor.ts`), plain Fastify
 * (`plainFastify.ts`) and, with `--before`, another checkout of the service or a commit. Without `--only` the figures are written
 * to docs/benchmark.md; the growth is written to docs/growth.md.
 */

/** After the calls in docs/benchmark.md. */
const ON_PAGE: Record<string, Case> = {
  'first-seconds': measureFirstSeconds,
  'without-statistics': measureWithoutStatistics,
  'large-board': measureLargeBoard,
  burst: measureBurst,
  health: measureHealth,
  embedded: measureEmbedded,
  sync: measureSync,
  starts: measureStarts,
};
const OTHERS: Record<string, Case> = {
  templates: measureTemplates,
  rollouts: measureRollouts,
  'sign-in': measureSignIn,
  search: measureSearch,
  reset: measureReset,
  events: measureEvents,
  webhooks: measureWebhooks,
  scaling: measureScaling,
  growth: measureGrowth,
  page: measurePage,
  'event-loop': measureEventLoop,
};
const CASES = { ...ON_PAGE, ...OTHERS };
const NAMES = [...WORKLOADS.map(({ name }) => name), ...Object.keys(CASES)];

const options = programOptions('npm run bench --', {
  /** Names of cases, with commas. */
  only: '',
  /** How long a measurement lasts, and how often it is repeated; each case has its own defaults. */
  seconds: '',
  rounds: '',
  /** `embedded` for some cases. */
  database: 'postgresql',
  /** A directory or a commit. */
  before: '',
  /** How many events there are beside webhooks, and projects in a rollout. */
  events: '300000',
  projects: '10000',
  /** `growth` fills the database with this share of its rows. */
  share: '1',
});
const chosen = options.only ? options.only.split(',') : [...WORKLOADS.map(({ name }) => name), ...Object.keys(ON_PAGE)];
for (const name of chosen)
  if (!NAMES.includes(name)) throw new Error(`--only: unknown case ${name}; use ${NAMES.join(', ')}.`);

let cleaned: Promise<void> | undefined;
/** Once, also if a signal ends a case with an error. */
const cleanUp = () => {
  cleaned ??= removeProcesses();
  return cleaned;
};
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void cleanUp().then(() => process.exit(130)));

// An embedded database waits with timers and threads that do not keep the process alive.
setInterval(() => undefined, 60_000);
try {
  const run: Run = {
    seconds: options.seconds ? Number(options.seconds) : undefined,
    rounds: options.rounds ? Number(options.rounds) : undefined,
    isEmbedded: options.database === 'embedded',
    before: options.before ? await checkoutOf(options.before) : undefined,
    events: Number(options.events),
    projects: Number(options.projects),
    share: Number(options.share),
  };
  await measureAll(run);
} finally {
  await cleanUp();
}
process.exit();

async function measureAll(run: Run): Promise<void> {
  const machine = describeRun(await serverVersion((await findTestServer()).url));
  console.log(`${machine}\n`);
  const measured = await measureCalls(run);
  const tables = measured.length > 0 ? [tableOf('Calls', measured)] : [];
  for (const [name, measure] of Object.entries(CASES)) {
    if (!chosen.includes(name)) continue;
    const own = await measure(run);
    for (const table of own) console.log(toText(table));
    if (name === 'growth' && run.share === 1 && !run.rounds) await writeGrowth(machine, own);
    tables.push(...own);
  }
  if (!options.only) await writePage(machine, measured, tables);
}

/** The chosen calls of many users at once. */
async function measureCalls(run: Run): Promise<MeasuredWorkload[]> {
  const workloads = WORKLOADS.filter(({ name }) => chosen.includes(name));
  if (workloads.length === 0) return [];
  return withPrograms(
    async (programs) => {
      const measured: MeasuredWorkload[] = [];
      for (const workload of workloads) {
        measured.push(await measureWorkload(programs, workload, run));
        console.log(toText(tableOf(workload.name, measured.slice(-1))));
      }
      return measured;
    },
    { before: run.before },
  );
}

async function checkoutOf(before: string): Promise<string> {
  return existsSync(before) ? resolve(before) : givenCheckout(before);
}
