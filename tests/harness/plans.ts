import { sql } from 'kysely';
import type pg from 'pg';
import { PLANNED_EACH_TIME } from '../../server/database/preparedStatements.ts';
import { type Db, query, transact } from '../../server/database/query.ts';
import { type Sent, statementsOf } from './statements.ts';
import { givenBoard, givenCard, givenGroup, givenTag, type World } from './world.ts';

export type { Sent } from './statements.ts';

/** The plans of statements, in a database with many rows. */

/** The identity providers of sign-on are settings; a sign-in at one that is unknown is refused by them, too. */
export const WITHOUT_STATEMENTS = ['auth.listIssuers', 'auth.startSso'];

/** Many projects with five cards each, one of them with half of the rows; without foreign keys and triggers, which would take most of the time. */
export async function fillWithCards(db: Db, projects: number): Promise<void> {
  const statements = [
    "set local session_replication_role = 'replica'",
    "insert into platforms (id, name) select n, 'Platform' from generate_series(1, 10) n",
    `insert into projects (id, platform_id, name) select n, n % 10 + 1, 'Project' from generate_series(1, ${projects}) n`,
    `insert into users (id, name, email, password_hash) select n, 'User', n || '@example.test', '' from generate_series(1, ${projects}) n`,
    `insert into members (project_id, user_id, role) select n % ${projects} + 1, n, 'member' from generate_series(1, ${projects}) n`,
    `insert into sessions (user_id, expires_at) select n, now() from generate_series(1, ${projects}) n`,
    `insert into boards (id, project_id, platform_id, title, position) select n, n % ${projects} + 1, 1, 'Board', n from generate_series(1, ${projects}) n`,
    `insert into groups (id, project_id, platform_id, board_id, title, position) select n, n % ${projects} + 1, 1, n % ${projects} + 1, 'Group', n from generate_series(1, ${projects}) n`,
    `insert into tags (id, project_id, name, position) select n, n % ${projects} + 1, 'Tag', n from generate_series(1, ${projects}) n`,
    "insert into cards (id, is_master, group_id, template_group_id, title) select n, true, 1, 1, 'Master' from generate_series(100001, 101000) n",
    `insert into cards (id, project_id, platform_id, master_card_id, group_id, owner_id, tag_id, title, position, sort_order, tour_key, deleted_at)
      select n, case when n % 2 = 0 then 1 else n % ${projects} + 1 end, 1, case when n % 10 = 5 then 100001 + n / ${projects} end, n % ${projects} + 1,
        case when n % 3 = 0 then n % ${projects} + 1 end, case when n % 4 = 0 then n % ${projects} + 1 end, 'Card', n, n,
        case when n % 100 = 0 then 'welcome' end, case when n % 10 = 7 then now() end
      from generate_series(1, ${5 * projects}) n`,
    `insert into comments (project_id, card_id, user_id, comment) select 1, n, 1, 'Comment' from generate_series(1, ${5 * projects}) n`,
    `insert into tour_dismissals (user_id, card_id) select n % ${projects} + 1, n from generate_series(1, ${projects}) n`,
    `insert into events (type, project_id, surface, subject_id)
      select 'card.updated', n % ${projects} + 1, 'rest', n from generate_series(1, ${5 * projects}) n`,
  ];
  await run(db, statements);
}

/** Ids above those of `fillWithCards`. */
const FIRST_ID = 200_000;

/** Gives the rows of the tests ids of their own. */
export async function skipIds(db: Db): Promise<void> {
  const tables = await query(
    db,
    sql<{ name: string }>`select table_name as name from information_schema.columns
      where table_schema = 'public' and column_name = 'id' and is_identity = 'YES'`,
  );
  for (const { name } of tables)
    await query(db, sql`select setval(pg_get_serial_sequence(${name}, 'id'), ${FIRST_ID})`);
}

/** Gives the project of each world many rows. */
export async function fillWorlds(db: Db): Promise<void> {
  const projects = `projects p cross join generate_series(1, 20) n
    where p.id in (select default_project_id from users)`;
  await run(db, [
    "set local session_replication_role = 'replica'",
    `insert into boards (project_id, platform_id, title, position) select p.id, p.platform_id, 'Board', n from ${projects}`,
    `insert into groups (project_id, platform_id, board_id, title, position) select b.project_id, b.platform_id, b.id, 'Group', n
      from boards b cross join generate_series(1, 3) n where b.project_id > ${FIRST_ID}`,
    `insert into cards (project_id, platform_id, group_id, title, position, sort_order, tour_key)
      select g.project_id, g.platform_id, g.id, 'Card', n, n, case when n = 1 then 'welcome' end
      from groups g cross join generate_series(1, 3) n where g.project_id > ${FIRST_ID}`,
    `insert into tour_dismissals (user_id, card_id) select own.user_id, c.id from cards c join (
        select project_id, user_id from members union select default_project_id, id from users
      ) as own on own.project_id = c.project_id
      where c.project_id > ${FIRST_ID} and c.tour_key is not null and c.id % 2 = 0`,
    `insert into comments (project_id, card_id, user_id, comment) select c.project_id, c.id, 1, 'Comment' from cards c
      where c.project_id > ${FIRST_ID} and c.id % 4 = 0`,
    `insert into tags (project_id, name, position) select p.id, 'Tag', n from ${projects}`,
    `insert into members (project_id, user_id, role) select p.id, n, 'member' from ${projects}`,
    `insert into events (type, project_id, platform_id, surface) select 'card.created', p.id, p.platform_id, 'rest' from ${projects}`,
    `insert into sessions (user_id, expires_at) select u.id, now() + interval '1 hour'
      from users u cross join generate_series(1, 10) where u.id > ${FIRST_ID}`,
  ]);
}

const run = (db: Db, statements: string[]) =>
  transact(db, async (db) => {
    for (const statement of statements) await query(db, sql.raw(statement));
  });

/** The filters of `cards.list`, by what they select. */
export const CARD_FILTERS: [string, (world: World) => Promise<object>][] = [
  ['nothing', async () => ({})],
  ['a group', async ({ project }) => ({ group_id: await givenGroup(project, await givenBoard(project)) })],
  [
    'a board',
    async ({ project }) => {
      const board_id = await givenBoard(project);
      for (let count = 0; count < 3; count++) await givenGroup(project, board_id);
      return { board_id };
    },
  ],
  ['a board without groups', async ({ project }) => ({ board_id: await givenBoard(project) })],
  ['a tag', async ({ project }) => ({ tag_id: await givenTag(project) })],
  ['an owner', async ({ users }) => ({ owner_id: users.member.id })],
  ['a status', async () => ({ status: 'never' })],
  ['a priority', async () => ({ priority: 'urgent' })],
  ['overdue ones', async () => ({ is_overdue: true })],
  ['ones in no group', async () => ({ is_grouped: false })],
  ['ones in a group', async () => ({ is_grouped: true })],
  ['a text', async () => ({ text: 'zebra' })],
  ['a short text', async () => ({ text: 'z' })],
  ['a text and a status', async () => ({ text: 'zebra', status: 'never' })],
];

/** A card whose project has many events of other cards. */
export async function givenHistory(db: Db, { project }: World): Promise<{ card_id: number }> {
  const card_id = await givenCard(project);
  await query(
    db,
    sql`insert into events (type, project_id, surface, subject_id, data)
      select 'comment.created', ${project.id}, 'rest', 1, jsonb_build_object('card_id', ${card_id}::int + n / 100, 'parent_comment_id', null, 'version', 1)
      from generate_series(90, 1000) n`,
  );
  return { card_id };
}

/** The reads and writes of some work. */
export const capture = async (work: () => Promise<unknown>): Promise<Sent[]> =>
  (await statementsOf(work)).filter(({ text }) => /\b(select|insert|update|delete)\b/i.test(text));

/** Whether it is planned for any values: a statement gets a name from its second use on (`preparedStatements.ts`). */
export const isPrepared = ({ text, values }: Sent) => !text.startsWith(PLANNED_EACH_TIME) && values.length > 0;

/** Sends commands at once, and returns the plans of those that explain. */
export async function sendAll(client: pg.Client, commands: string[]) {
  const results: unknown = await client.query(commands.join(';\n'));
  const rows = [results].flat().flatMap((result) => (result as pg.QueryResult).rows);
  return rows.flatMap(({ 'QUERY PLAN': plan }) => (plan ? [plan[0].Plan] : []));
}

/** `execute` of a prepared statement with these values. */
export const executed = (name: string, values: unknown[]) =>
  `execute ${name}${values.length > 0 ? `(${values.map(literal).join(', ')})` : ''}`;

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value))
    return quoted(`{${value.map((part) => (typeof part === 'number' ? part : JSON.stringify(part))).join(',')}}`);
  if (value instanceof Date) return quoted(value.toISOString());
  return quoted(typeof value === 'object' ? JSON.stringify(value) : String(value));
}
const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
