import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Database } from '../../server/database/connect.ts';
import { oneRow, query } from '../../server/database/query.ts';
import { open, whileRepeating } from '../harness/load.ts';
import { startService } from '../harness/process.ts';
import { BESIDE_COLUMNS, besideCells } from './beside.ts';
import type { Run } from './run.ts';
import { type Table, whole } from './table.ts';
import { BOARD, givenTemplateService, type TemplateService } from './templateRows.ts';
import { milliseconds } from './templates.ts';
import { listBoards } from './workloads.ts';

const CHANGED_CARDS = 3;
const KILLS = 10;

/** A rollout to many projects with 60 cards each: its plan, other calls meanwhile, nodes that are killed ten times, and its rollback. */
export async function measureRollouts({ projects, seconds = 10 }: Run): Promise<Table[]> {
  const bench = await givenTemplateService(projects);
  const { client, database } = bench;
  const { db } = database;
  const sync = await milliseconds(() => client.masterBoards.sync.mutate(BOARD));
  await query(db, sql`vacuum analyze`);
  await change(database, projects);
  const before = await contents(database);

  const { id, ...planned } = await plan(bench);
  const alone = await timesWhile(bench, () => pause(seconds * 1000));
  await client.rollouts.start.mutate({ id });
  const node = await startService(bench.settings);
  const half = sql`select from rollout_targets where rollout_id = ${id} and state <> 'planned' offset ${Math.floor(projects / 2)} limit 1`;
  const meanwhile = await timesWhile(bench, () => until(async () => (await query(db, half)).length > 0));
  await node.stop('SIGKILL');
  const rest = await milliseconds(() => killing(bench, () => isIn(bench, id, 'done')));
  const result = await resultOf(bench, id);

  await editAfterwards(database);
  await client.rollouts.rollback.mutate({ id });
  const back = await milliseconds(() => killing(bench, () => isIn(bench, id, 'rolled_back')));
  const afterRollback = await difference(database, before);
  await rollOutAgain(bench);
  const afterAnother = await difference(database, before);
  await bench.stop();
  const calls = [whole(alone.length), whole(meanwhile.length)];
  return [
    {
      title: `Rollout to ${whole(projects)} projects with 60 cards each`,
      columns: ['', 'ms', ''],
      rows: [
        ['sync', whole(sync), ''],
        ['plan', whole(planned.milliseconds), `${whole(planned.database)} ms of PostgreSQL`],
        [`the second half, with ${KILLS} kills of nodes`, whole(rest), result],
        [`rollback, with ${KILLS} kills of nodes`, whole(back), afterRollback],
        ['three syncs and a rollout of the same contents', '', afterAnother],
      ],
    },
    {
      title: 'boards/list during a rollout',
      columns: ['', ...BESIDE_COLUMNS, 'calls alone', 'meanwhile'],
      rows: [['boards/list', ...besideCells({ alone, meanwhile }), ...calls]],
    },
  ];
}

async function plan({
  client,
  database,
}: TemplateService): Promise<{ id: number; milliseconds: number; database: number }> {
  const { release } = await client.releases.publish.mutate(BOARD);
  const begun = await busyTime(database);
  let id = 0;
  const time = await milliseconds(async () => {
    id = (await client.rollouts.plan.mutate({ release_id: release.id, stages: [{ percent: 100 }] })).rollout.id;
  });
  return { id, milliseconds: time, database: (await busyTime(database)) - begun };
}

async function rollOutAgain(bench: TemplateService): Promise<void> {
  const { client } = bench;
  for (let again = 0; again < 3; again++) await client.masterBoards.sync.mutate(BOARD);
  const { release } = await client.releases.publish.mutate({ ...BOARD, note: 'Again' });
  const { rollout } = await client.rollouts.plan.mutate({ release_id: release.id, stages: [{ percent: 100 }] });
  await client.rollouts.start.mutate({ id: rollout.id });
  await killing(bench, () => isIn(bench, rollout.id, 'done'), 0);
}

const isIn = async ({ client }: TemplateService, id: number, state: 'done' | 'rolled_back') =>
  (await client.rollouts.get.query({ id })).rollout.state === state;

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

/** Other projects edit a card after the rollout. */
const editAfterwards = ({ db }: Database) =>
  query(
    db,
    sql`
    update cards set title = 'Edited after it', updated_at = now() + interval '1 second'
    where master_card_id = (select min(master_card_id) + 1 from cards where master_card_id is not null) and project_id % 10 = 2`,
  );

/** How the projects ended; no card may be twice, and no project half done. */
async function resultOf({ client, database: { db } }: TemplateService, id: number): Promise<string> {
  const { rollout } = await client.rollouts.get.query({ id });
  const { twice, wrong } = oneRow(
    await query(
      db,
      sql<{ twice: number; wrong: number }>`
        select (select count(*)::int from (
            select from cards where not is_master group by project_id, master_card_id having count(*) > 1) as doubled) as twice,
          (select count(*)::int from (
            select from rollout_changes where rollout_id = ${id} group by project_id
            having count(*) not in (${CHANGED_CARDS}, ${CHANGED_CARDS + 1})) as half) as wrong`,
    ),
  );
  return `${JSON.stringify(rollout.projects)}, ${twice} cards twice, ${wrong} projects half done`;
}

/** The titles of all copies by their ids. */
async function contents({ db }: Database): Promise<Map<number, string>> {
  const rows = await query(
    db,
    sql<{ id: number; title: string }>`select id, title from cards where not is_master order by id`,
  );
  return new Map(rows.map(({ id, title }) => [id, title]));
}

async function difference(database: Database, before: Map<number, string>): Promise<string> {
  const now = await contents(database);
  const changed = [...before].filter(([id, title]) => now.get(id) !== title);
  const edited = changed.filter(([id]) => now.get(id) === 'Edited after it').length;
  const [same, others, added] = [before.size - changed.length, changed.length - edited, now.size - before.size];
  return `${same} cards as before, ${edited} edited ones untouched, ${others} others differ, ${added} added`;
}

/** How long the server was busy with statements of this database. */
async function busyTime({ db }: Database): Promise<number> {
  await query(db, sql`select pg_stat_force_next_flush()`);
  await pause(1100);
  const rows = await query(
    db,
    sql<{ time: number }>`select active_time as time from pg_stat_database where datname = current_database()`,
  );
  return oneRow(rows).time;
}

/** How long lists of boards take, one after the other, until the work is done. */
async function timesWhile({ url, token }: TemplateService, work: () => Promise<unknown>): Promise<number[]> {
  const { send, close } = await open(url, { ...listBoards('REST'), token }, 200);
  const times: number[] = [];
  const list = async () => {
    times.push(await send());
    await pause(5);
  };
  await whileRepeating([list], work);
  close();
  return times;
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) await pause(200);
}

/** Two nodes work on it; one of them is killed at random, and another one takes its place. */
async function killing(bench: TemplateService, isDone: () => Promise<boolean>, kills = KILLS): Promise<void> {
  const nodes = [await startService(bench.settings), await startService(bench.settings)];
  for (let killed = 0; !(await isDone()); ) {
    await pause(300 + Math.random() * 700);
    if (killed++ >= kills) continue;
    const at = Math.floor(Math.random() * nodes.length);
    await nodes[at]!.stop('SIGKILL');
    nodes[at] = await startService(bench.settings);
  }
  await Promise.all(nodes.map(({ stop }) => stop('SIGKILL')));
}
