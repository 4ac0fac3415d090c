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
import { lookupsIn, type Plan, rowsRead, type Sizes, scannedIn } from '../harness/planReading.ts';
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

/** The work of a statement is about the same in a larger database: it follows from its limits. Erasures read slices of 2000 rows. */
const MOST_ROWS = 2500;

describe.skipIf(!databaseUrl)('with 100,000 cards', () => {
  let client: pg.Client;
  let sizes: Sizes;
  beforeAll(async () => {
    await testDatabase();
    const url = `${databaseUrl}${randomBytes(4).toString('hex')}`;
    await createDatabase(url);
    const filled = await givenDatabase({ DATABASE_URL: url });
    await migrate(filled);
    await fillWithCards(filled.db, 20_000);
    await transact(filled.db, async (db) => {
      // All rows are counted: plans don't depend on a random sample of them.
      await query(db, sql`set local default_statistics_target = 1000`);
      await query(db, sql`analyze`);
    });
    const large = sql<{ name: string; rows: number }>`
      select relname as name, reltuples as rows from pg_class where relkind = 'r' and reltuples >= 10000`;
    sizes = new Map((await query(filled.db, large)).map(({ name, rows }) => [name, rows]));
    await filled.close();
    client = new pg.Client({ connectionString: url });
    await client.connect();
  });
  afterAll(() => client?.end());

  /** The large tables that a statement would scan. */
  async function scansOf(statement: Sent, isBulk = false): Promise<string[]> {
    const plan = await planOf(client, statement, isBulk);
    const scanned = scannedIn(plan, sizes).filter((table) => sizes.has(table));
    const rows = Math.round(rowsRead(plan, sizes));
    return isBulk || rows <= MOST_ROWS ? scanned : [...scanned, `reads ${rows} rows: ${statement.text}`];
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

  it.each<[string, unknown[], string[]]>([
    ['select min(id) from cards', [], []],
    ['select min(id) from cards where is_master is not null', [], []],
    ["select min(id) from cards where title = 'never'", [], ['cards', 'too many rows']],
    ['select id from cards order by id', [], ['cards', 'too many rows']],
    ['select id from cards where id is not null order by id limit 1', [], ['cards']],
    ['select id from cards where id > $1 and title = $2', [0, 'never'], ['too many rows']],
    ['select id from cards where id > $1 order by id limit 10', [0], []],
    [
      'select (select max(c.id) from cards c where group_id = g.id) from groups g where id > $1',
      [0],
      ['too many rows'],
    ],
  ])('the check itself, of %s', async (text, values, expected) => {
    const found = await scansOf({ text, values });

    expect(found.map((one) => one.replace(/^reads \d+ (rows): .*/, 'too many $1'))).toEqual(expected);
  });

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
