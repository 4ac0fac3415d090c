import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { procedures } from '../server/api/procedures.ts';
import { inputFor } from '../server/contract/input.ts';
import { DeckhandClient } from '../server/database/client.ts';
import type { Database } from '../server/database/connect.ts';
import { migrate } from '../server/database/migrate.ts';
import { PLANNED_EACH_TIME } from '../server/database/preparedStatements.ts';
import { type Db, query, transact } from '../server/database/query.ts';
import { createDatabase } from './harness/server.ts';
import { databaseUrl, givenDatabase, testDatabase } from './harness/service.ts';
import { allowedCaller, givenStartState } from './harness/startStates.ts';
import { overRpc } from './harness/surfaces.ts';
import { givenBoard, givenCard, givenGroup, givenTag, givenWorld, type World } from './harness/world.ts';

/** The statements of calls are planned, not run, in a database of 100,000 cards: none may scan a table that grows. */

/** Copying a template goes through all projects. The users are listed page by page, in the order of an index. */
const WHOLE_TABLE: Record<string, string[]> = {
  'masterBoards.sync': ['projects'],
  'masterBoards.push': ['projects'],
  'masterGroups.push': ['projects'],
  'masterCards.push': ['projects'],
  'masterCards.update': ['projects'],
  'users.list': ['users'],
};

/** In the units of the planner. The work of a statement is about the same in a larger database: it follows from its limits. */
const HIGHEST_COST = 350;

type Sent = { text: string; values: unknown[] };

describe.skipIf(!databaseUrl)('with 100,000 cards', () => {
  let filled: Database;
  beforeAll(async () => {
    await testDatabase();
    const url = `${databaseUrl}${randomBytes(4).toString('hex')}`;
    await createDatabase(url);
    filled = await givenDatabase({ DATABASE_URL: url });
    await migrate(filled);
    await fill(filled.db);
  }, 60_000);
  afterAll(() => filled?.close());

  /** The tables that the statements of some calls scan. */
  async function scansDuring(work: () => Promise<unknown>): Promise<string[]> {
    const statements = await capture(work);
    expect(statements).not.toEqual([]);
    const scans: string[] = [];
    // Bulk work forbids sequential scans itself, and has no other index to use.
    const isBulk = statements.some(({ text }) => text.includes("set_config('enable_seqscan', 'off'"));
    for (const statement of statements) scans.push(...(await scansOf(filled.db, statement, isBulk)));
    return [...new Set(scans)].sort();
  }

  it.each(procedures.map((procedure) => [procedure.name, procedure] as const))(
    '%s scans none',
    async (name, procedure) => {
      const world = await givenWorld();
      const input = inputFor(procedure, await givenStartState(procedure, world));

      const scanned = await scansDuring(() => overRpc(allowedCaller(world, procedure), procedure, input));

      expect(scanned).toEqual(WHOLE_TABLE[name] ?? []);
    },
  );

  it('comments.create finds the parent by its id, and reads no other comments of the card', async () => {
    const world = await givenWorld();
    const card_id = await givenCard(world.project);
    const statements = await capture(() => world.asMember.rpc.comments.create.mutate({ card_id, comment: 'x' }));
    const insert = statements.find(({ text }) => text.includes('insert into comments'));

    const { plan } = await planOf(filled.db, insert!, false);

    expect(lookupsIn(plan, 'comments')).toEqual([expect.stringMatching(/^\(id = /)]);
  });

  const FILTERS: [string, (world: World) => Promise<object>][] = [
    ['nothing', async () => ({})],
    ['a group', async ({ project }) => ({ group_id: await givenGroup(project, await givenBoard(project)) })],
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
  it.each(FILTERS)('cards.list by %s scans none', async (_, filterOf) => {
    const world = await givenWorld();
    const filter = await filterOf(world);

    expect(await scansDuring(() => world.asMember.rpc.cards.list.query(filter))).toEqual([]);
  });
});

/** 20,000 projects, one of them with half of the rows; without foreign keys and triggers, which would take most of the time. */
async function fill(db: Db): Promise<void> {
  const statements = [
    "set local session_replication_role = 'replica'",
    "insert into platforms (id, name) select n, 'Platform' from generate_series(1, 10) n",
    "insert into projects (id, platform_id, name) select n, n % 10 + 1, 'Project' from generate_series(1, 20000) n",
    "insert into users (id, name, email, password_hash) select n, 'User', n || '@example.test', '' from generate_series(1, 20000) n",
    "insert into members (project_id, user_id, role) select n % 20000 + 1, n, 'member' from generate_series(1, 20000) n",
    'insert into sessions (user_id, expires_at) select n, now() from generate_series(1, 20000) n',
    "insert into boards (id, project_id, platform_id, title, position) select n, n % 20000 + 1, 1, 'Board', n from generate_series(1, 20000) n",
    "insert into groups (id, project_id, platform_id, board_id, title, position) select n, n % 20000 + 1, 1, n % 20000 + 1, 'Group', n from generate_series(1, 20000) n",
    "insert into tags (id, project_id, name, position) select n, n % 20000 + 1, 'Tag', n from generate_series(1, 20000) n",
    "insert into cards (id, is_master, group_id, template_group_id, title) select n, true, 1, 1, 'Master' from generate_series(100001, 101000) n",
    `insert into cards (id, project_id, platform_id, master_card_id, group_id, owner_id, tag_id, title, position, sort_order, tour_key, deleted_at)
      select n, case when n % 2 = 0 then 1 else n % 20000 + 1 end, 1, case when n % 10 = 5 then 100001 + n / 20000 end, n % 20000 + 1,
        case when n % 3 = 0 then n % 20000 + 1 end, case when n % 4 = 0 then n % 20000 + 1 end, 'Card', n, n,
        case when n % 100 = 0 then 'welcome' end, case when n % 10 = 7 then now() end
      from generate_series(1, 100000) n`,
    "insert into comments (project_id, card_id, user_id, comment) select 1, n, 1, 'Comment' from generate_series(1, 100000) n",
    'insert into tour_dismissals (user_id, card_id) select n % 20000 + 1, n from generate_series(1, 20000) n',
  ];
  await transact(db, async (db) => {
    for (const statement of statements) await query(db, sql.raw(statement));
  });
  await query(db, sql`analyze`);
}

/** The statements that reach the server during some work. */
async function capture(work: () => Promise<unknown>): Promise<Sent[]> {
  const driver: any = DeckhandClient.prototype;
  const { query } = driver;
  const sent: Sent[] = [];
  driver.query = function (text: string, values: unknown[] = []) {
    if (/\b(select|insert|update|delete)\b/i.test(text)) sent.push({ text, values });
    return query.call(this, text, values);
  };
  try {
    await work();
    return sent;
  } finally {
    driver.query = query;
  }
}

type Plan = {
  'Total Cost': number;
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  'Index Name'?: string;
  Plans?: Plan[];
};

/** The large tables that a statement would scan. */
async function scansOf(db: Db, statement: Sent, isBulk: boolean): Promise<string[]> {
  const { plan, largeTables } = await planOf(db, statement, isBulk);
  const scanned = scannedIn(plan).filter((table) => largeTables.has(table));
  return isBulk || plan['Total Cost'] < HIGHEST_COST ? scanned : [...scanned, `too much work: ${statement.text}`];
}

/** The plan of a statement, for any values if it is a prepared one. */
function planOf(db: Db, { text, values }: Sent, isBulk: boolean): Promise<{ plan: Plan; largeTables: Set<string> }> {
  return transact(db, async (db) => {
    const mode = text.startsWith(PLANNED_EACH_TIME) ? 'force_custom_plan' : 'force_generic_plan';
    await query(
      db,
      sql`select set_config('plan_cache_mode', ${mode}, true), set_config('enable_seqscan', ${isBulk ? 'off' : 'on'}, true)`,
    );
    await query(db, sql.raw(`prepare planned as ${text}`));
    const given = values.length > 0 ? `(${values.map(literal).join(', ')})` : '';
    const [row] = await query(
      db,
      sql<{ 'QUERY PLAN': [{ Plan: Plan }] }>`${sql.raw(`explain (format json) execute planned${given}`)}`,
    );
    await query(db, sql`deallocate planned`);
    const large = await query(
      db,
      sql<{ name: string }>`select relname as name from pg_class where relkind = 'r' and reltuples >= 10000`,
    );
    return { plan: row!['QUERY PLAN'][0].Plan, largeTables: new Set(large.map(({ name }) => name)) };
  });
}

/** The conditions by which a table is looked up in its indexes. */
function lookupsIn(plan: Plan, table: string): string[] {
  const { 'Relation Name': name, 'Index Cond': condition, Plans = [] } = plan;
  return [
    ...(name === table && condition !== undefined ? [condition] : []),
    ...Plans.flatMap((inner) => lookupsIn(inner, table)),
  ];
}

/** A scan of a whole index counts, too, unless it is a partial one. */
function scannedIn(plan: Plan): string[] {
  const { 'Node Type': type, 'Relation Name': table = '', 'Index Name': index = '', Plans = [] } = plan;
  const isWhole =
    type === 'Seq Scan' || (/^Index (Only )?Scan$/.test(type) && !plan['Index Cond'] && !PARTIAL.includes(index));
  return [...(isWhole ? [table] : []), ...Plans.flatMap(scannedIn)];
}
const PARTIAL = ['boards_master_index', 'groups_clearing_index'];

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value))
    return quoted(`{${value.map((part) => (typeof part === 'string' ? JSON.stringify(part) : part)).join(',')}}`);
  if (value instanceof Date) return quoted(value.toISOString());
  return quoted(typeof value === 'object' ? JSON.stringify(value) : String(value));
}
const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
