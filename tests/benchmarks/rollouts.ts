import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { pino } from 'pino';
import { connect, type Database } from '../../server/database/connect.ts';
import { migrate } from '../../server/database/migrate.ts';
import { oneRow, query } from '../../server/database/query.ts';
import { startRollouts } from '../../server/domain/template/rolloutWork.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { findTestServer } from '../harness/server.ts';
import { givenBenchDatabase } from './database.ts';
import { percentile } from './load.ts';
import { fill, milliseconds, openClient, report, SECRET } from './templates.ts';

/**
 * Measures a rollout to 10,000 projects with 60 cards each: its plan, other calls meanwhile, nodes that are killed ten times, and
 * its rollback: `npm run bench:rollouts`. With `-- 1000`, to as many projects.
 */

const CHANGED_CARDS = 3;
const KILLS = 10;

/** A process that only works on rollouts, until it is killed. */
async function runNode(): Promise<void> {
  const database = await connect(readSettings({ DATABASE_URL: process.env.DATABASE_URL, JWT_SECRET: SECRET }));
  startRollouts(database, pino({ level: 'warn' }), 100);
  setInterval(() => undefined, 1000);
}

async function measure(projects: number): Promise<void> {
  const { url } = await findTestServer();
  if (!url) throw new Error('No PostgreSQL server is reachable.');
  const { settings, remove } = await givenBenchDatabase({ isEmbedded: false });
  const database = await connect(readSettings(settings));
  await migrate(database);
  try {
    await rollOutAndBack(database, String(settings.DATABASE_URL), projects);
  } finally {
    await database.close();
    await remove();
  }
  process.exit();
}

async function rollOutAndBack(database: Database, url: string, projects: number): Promise<void> {
  const { db } = database;
  await fill(database, projects);
  const { client, close } = await openClient(database);
  report(
    `sync of ${projects} projects × 60 cards`,
    `${await milliseconds(() => client.masterBoards.sync.mutate({ board_id: 1 }))} ms`,
  );
  await query(db, sql`vacuum analyze`);
  await change(database, projects);
  const before = await contents(database);

  const { release } = await client.releases.publish.mutate({ board_id: 1 });
  const begun = await busyTime(database);
  let id = 0;
  const planned = await milliseconds(async () => {
    const stages = [{ percent: 100 }];
    id = (await client.rollouts.plan.mutate({ release_id: release.id, stages })).rollout.id;
  });
  report('plan', `${planned} ms, ${Math.round((await busyTime(database)) - begun)} ms of PostgreSQL`, '5,000 ms');

  const alone = await latencies(client, () => pause(10_000));
  await client.rollouts.start.mutate({ id });
  const node = startNode(url);
  const half = sql`select from rollout_targets where rollout_id = ${id} and state <> 'planned' offset ${Math.floor(projects / 2)} limit 1`;
  const meanwhile = await latencies(client, () => until(async () => (await query(db, half)).length > 0));
  report('boards/list alone, p99', `${alone.p99} ms of ${alone.count} calls`);
  report(
    'meanwhile',
    `${meanwhile.p99} ms of ${meanwhile.count} calls, ${(meanwhile.p99 / alone.p99).toFixed(2)} times`,
    '1.3 times',
  );
  node.kill('SIGKILL');

  const rest = await milliseconds(() =>
    killing(url, async () => (await client.rollouts.get.query({ id })).rollout.state === 'done'),
  );
  const { rollout } = await client.rollouts.get.query({ id });
  const { twice } = oneRow(
    await query(
      db,
      sql<{
        twice: number;
      }>`select count(*)::int as twice from (select from cards where not is_master group by project_id, master_card_id having count(*) > 1) as t`,
    ),
  );
  const wrong = await query(
    db,
    sql`select project_id from rollout_changes where rollout_id = ${id} group by project_id having count(*) not in (${CHANGED_CARDS}, ${CHANGED_CARDS + 1})`,
  );
  report(
    `the other half, with ${KILLS} kills of nodes`,
    `${rest} ms; ${JSON.stringify(rollout.projects)}, ${twice} cards twice, ${wrong.length} projects half done`,
  );

  await query(
    db,
    sql`
    update cards set title = 'Edited after it', updated_at = now() + interval '1 second'
    where master_card_id = (select min(master_card_id) + 1 from cards where master_card_id is not null) and project_id % 10 = 2`,
  );
  await client.rollouts.rollback.mutate({ id });
  report(
    'rollback',
    `${await milliseconds(() => killing(url, async () => (await client.rollouts.get.query({ id })).rollout.state === 'rolled_back'))} ms`,
  );
  await compare(database, before, 'after the rollback');
  for (let again = 0; again < 3; again++) await client.masterBoards.sync.mutate({ board_id: 1 });
  const later = await client.releases.publish.mutate({ board_id: 1, note: 'Again' });
  const next = await client.rollouts.plan.mutate({ release_id: later.release.id, stages: [{ percent: 100 }] });
  await client.rollouts.start.mutate({ id: next.rollout.id });
  await killing(
    url,
    async () => (await client.rollouts.get.query({ id: next.rollout.id })).rollout.state === 'done',
    0,
  );
  await compare(database, before, 'after three syncs and a rollout of the same contents');
  await close();
}

/** Three cards get another title, and there is a new one; a tenth of the projects have edited one of them. */
async function change({ db }: Database, projects: number): Promise<void> {
  await query(
    db,
    sql`update cards set title = title || ' changed', updated_at = now() where is_master and id <= (select min(id) + ${CHANGED_CARDS - 1} from cards where is_master)`,
  );
  await query(
    db,
    sql`insert into cards (is_master, group_id, title, position, sort_order) values (true, 1, 'New', 99, 99)`,
  );
  await query(
    db,
    sql`
    update cards set title = 'Edited', updated_at = now() + interval '1 second'
    where master_card_id = (select min(id) from cards where is_master) and project_id % 10 = 1 and project_id <= ${projects}`,
  );
}

/** The title of every copy. */
const contents = ({ db }: Database) =>
  query(
    db,
    sql<{
      id: number;
      title: string;
      project_id: number;
    }>`select id, title, project_id from cards where not is_master order by id`,
  );

async function compare(database: Database, before: Awaited<ReturnType<typeof contents>>, when: string): Promise<void> {
  const now = new Map((await contents(database)).map(({ id, title }) => [id, title]));
  const changed = before.filter(({ id, title }) => now.get(id) !== title);
  const edited = changed.filter(({ id }) => now.get(id) === 'Edited after it');
  const added = now.size - before.length;
  report(
    when,
    `${before.length - changed.length} cards as before, ${edited.length} edited ones untouched, ${changed.length - edited.length} others differ, ${added} added`,
    '0 others, 0 added',
  );
}

/** How long the server was busy with statements of this database. */
async function busyTime({ db }: Database): Promise<number> {
  const rows = await query(
    db,
    sql<{
      time: number;
    }>`select pg_stat_force_next_flush() is null, active_time as time from pg_stat_database where datname = current_database()`,
  );
  await pause(1100);
  const again = await query(
    db,
    sql<{ time: number }>`select active_time as time from pg_stat_database where datname = current_database()`,
  );
  return (again[0] ?? oneRow(rows)).time;
}

type Client = Awaited<ReturnType<typeof openClient>>['client'];

async function latencies(client: Client, work: () => Promise<unknown>) {
  let isRunning = true;
  const times: number[] = [];
  const listing = (async () => {
    while (isRunning) {
      const begun = performance.now();
      await client.boards.list.query();
      times.push(performance.now() - begun);
      await pause(5);
    }
  })();
  await work();
  isRunning = false;
  await listing;
  const sorted = Float64Array.from(times).sort();
  return { count: times.length, p99: Number(percentile(sorted, 0.99).toFixed(2)) };
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) await pause(200);
}

const startNode = (url: string): ChildProcess =>
  spawn(process.execPath, [import.meta.filename, 'node'], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: 'inherit',
  });

/** Two nodes work on it; one of them is killed at random, and another one takes its place. */
async function killing(url: string, isDone: () => Promise<boolean>, kills = KILLS): Promise<void> {
  const nodes = [startNode(url), startNode(url)];
  for (let killed = 0; !(await isDone()); ) {
    await pause(300 + Math.random() * 700);
    if (killed++ >= kills) continue;
    const at = Math.floor(Math.random() * nodes.length);
    nodes[at]!.kill('SIGKILL');
    nodes[at] = startNode(url);
  }
  for (const node of nodes) {
    node.kill('SIGKILL');
    if (node.exitCode === null && node.signalCode === null) await once(node, 'exit');
  }
}

if (process.argv[2] === 'node') await runNode();
else await measure(Number(process.argv[2] ?? 10_000));
