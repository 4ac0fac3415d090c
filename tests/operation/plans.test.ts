import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { inputFor } from '../../server/contract/input.ts';
import { migrate } from '../../server/database/migrate.ts';
import { PLANNED_EACH_TIME } from '../../server/database/preparedStatements.ts';
import { query, transact } from '../../server/database/query.ts';
import { readEvents } from '../../server/domain/event/feed.ts';
import {
  CARD_FILTERS,
  capture,
  executed,
  fillWithCards,
  type Sent,
  sendAll,
  WITHOUT_STATEMENTS,
} from '../harness/plans.ts';
import { createDatabase } from '../harness/server.ts';
import { databaseUrl, givenDatabase, testDatabase } from '../harness/service.ts';
import { allowedCaller, givenStartState } from '../harness/startStates.ts';
import { overRpc } from '../harness/surfaces.ts';
import { givenCard, givenWorld, testDb } from '../harness/world.ts';

/** The statements of calls are planned, not run, in a database of 100,000 cards: none may scan a table that grows. */

/**
 * Copying a template goes through all projects. The users are listed page by page, in the order of an index. An erasure reads what
 * it has to search in slices.
 */
const WHOLE_TABLE: Record<string, string[]> = {
  'masterBoards.sync': ['projects'],
  'masterBoards.push': ['projects'],
  'masterGroups.push': ['projects'],
  'masterCards.push': ['projects'],
  'masterCards.update': ['projects'],
  'users.list': ['users'],
  'users.erase': ['events', 'projects'],
  'account.erase': ['events', 'projects'],
};

/** In the units of the planner. The work of a statement is about the same in a larger database: it follows from its limits. */
const HIGHEST_COST = 350;

describe.skipIf(!databaseUrl)('with 100,000 cards', () => {
  let client: pg.Client;
  let largeTables: string[];
  beforeAll(async () => {
    await testDatabase();
    const url = `${databaseUrl}${randomBytes(4).toString('hex')}`;
    await createDatabase(url);
    const filled = await givenDatabase({ DATABASE_URL: url });
    await migrate(filled);
    await fillWithCards(filled.db, 20_000);
    await transact(filled.db, async (db) => {
      // All rows are counted: the costs don't depend on a random sample of them.
      await query(db, sql`set local default_statistics_target = 1000`);
      await query(db, sql`analyze`);
    });
    const large = sql<{
      name: string;
    }>`select relname as name from pg_class where relkind = 'r' and reltuples >= 10000`;
    largeTables = (await query(filled.db, large)).map(({ name }) => name);
    await filled.close();
    client = new pg.Client({ connectionString: url });
    await client.connect();
  }, 60_000);
  afterAll(() => client?.end());

  /** The large tables that a statement would scan. */
  async function scansOf(statement: Sent, isBulk = false): Promise<string[]> {
    const plan = await planOf(client, statement, isBulk);
    const scanned = scannedIn(plan).filter((table) => largeTables.includes(table));
    return isBulk || plan['Total Cost'] < HIGHEST_COST ? scanned : [...scanned, `too much work: ${statement.text}`];
  }

  /** Those that these statements scan. */
  async function scansOfAll(statements: Sent[]): Promise<string[]> {
    const scans: string[] = [];
    // Bulk work forbids sequential scans itself, and has no other index to use.
    const isBulk = statements.some(({ text }) => text.includes("set_config('enable_seqscan', 'off'"));
    for (const statement of statements) scans.push(...(await scansOf(statement, isBulk)));
    return [...new Set(scans)].sort();
  }

  it.each(procedures.map((procedure) => [procedure.name, procedure] as const))(
    '%s scans none',
    async (name, procedure) => {
      const world = await givenWorld();
      const input = inputFor(procedure, await givenStartState(procedure, world));

      const statements = await capture(() => overRpc(allowedCaller(world, procedure), procedure, input));
      const scanned = await scansOfAll(statements);

      if (!WITHOUT_STATEMENTS.includes(name)) expect(statements).not.toEqual([]);
      expect(scanned).toEqual(WHOLE_TABLE[name] ?? []);
    },
  );

  it.each(procedures.filter(({ meta, type }) => meta.confirms && type === 'query'))(
    '$name of a caller who called before scans none',
    async (procedure) => {
      const world = await givenWorld();
      const input = inputFor(procedure, await givenStartState(procedure, world));
      let statements: Sent[] = [];
      // Slow reads leave the lane for some time, and then do not confirm.
      await expect
        .poll(async () => {
          statements = await capture(() => world.asMember.post(procedure.rest!.path, input));
          return statements.filter(({ text }) => text.includes('confirmation as materialized'));
        })
        .toHaveLength(1);

      for (const statement of statements) expect(await scansOf(statement)).toEqual([]);
    },
  );

  it('comments.create finds the parent by its id, and reads no other comments of the card', async () => {
    const world = await givenWorld();
    const card_id = await givenCard(world.project);
    const statements = await capture(() => world.asMember.rpc.comments.create.mutate({ card_id, comment: 'x' }));
    const insert = statements.find(({ text }) => text.includes('insert into comments'));

    const plan = await planOf(client, insert!);

    expect(lookupsIn(plan, 'comments')).toEqual([expect.stringMatching(/^\(id = /)]);
  });

  it.each(['all', 'some'])('events.list of a card finds its events, %s types, by the card', async (which) => {
    const world = await givenWorld();
    const input = { card_id: await givenCard(world.project), types: which === 'all' ? null : ['card.moved' as const] };
    const statements = await capture(() => world.asMember.rpc.events.list.query(input));
    const plan = await planOf(client, statements.at(-1)!);

    expect(lookupsIn(plan, 'events')).toContainEqual(
      expect.stringMatching(/^\(\(project_id = .* AND \(CASE split_part/),
    );
    for (const statement of statements) expect(await scansOf(statement)).toEqual([]);
  });

  it('the events of a quiet project are found by the project, beside those of busy ones', async () => {
    const { project } = await givenWorld();
    const place = { transaction: '0', id: '0', seconds: 0 };
    const [read] = await capture(async () => readEvents(await testDb(), { place, limit: 100 }, [project.id]));
    await client.query('begin');
    await client.query('update events set project_id = 1 + id % 10');
    await client.query('analyze events');

    const planned = planOf(client, { ...read!, text: `${PLANNED_EACH_TIME} ${read!.text}` });
    const plan = await planned.finally(() => client.query('rollback'));

    expect(lookupsIn(plan, 'events')).toContainEqual(expect.stringContaining('project_id'));
  });

  it.each(CARD_FILTERS)('cards.list by %s scans none', async (_, filterOf) => {
    const world = await givenWorld();
    const filter = await filterOf(world);

    expect(await scansOfAll(await capture(() => world.asMember.rpc.cards.list.query(filter)))).toEqual([]);
  });
});

type Plan = {
  'Total Cost': number;
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  'Index Name'?: string;
  Plans?: Plan[];
};

/** The plan of a statement, for any values if it is a prepared one. */
async function planOf(client: pg.Client, { text, values }: Sent, isBulk = false): Promise<Plan> {
  const [plan] = await sendAll(client, [
    `set plan_cache_mode = ${text.startsWith(PLANNED_EACH_TIME) ? 'force_custom_plan' : 'force_generic_plan'}`,
    `set enable_seqscan = ${isBulk ? 'off' : 'on'}`,
    'deallocate all',
    `prepare planned as ${text}`,
    `explain (format json) ${executed('planned', values)}`,
  ]);
  return plan;
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
const PARTIAL = ['boards_master_index', 'groups_clearing_index', 'users_superadmins_index'];
