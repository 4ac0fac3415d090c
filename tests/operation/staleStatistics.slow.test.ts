import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findProcedure, type Procedure, procedures } from '../../server/api/procedures.ts';
import { inputFor } from '../../server/contract/input.ts';
import { oneRow, query } from '../../server/database/query.ts';
import {
  CARD_FILTERS,
  capture,
  executed,
  fillWithCards,
  fillWorlds,
  givenHistory,
  isPrepared,
  type Sent,
  sendAll,
  skipIds,
  WITHOUT_STATEMENTS,
} from '../harness/plans.ts';
import { databaseUrl, withOwnDatabase } from '../harness/service.ts';
import { allowedCaller, givenStartState } from '../harness/startStates.ts';
import { overRpc } from '../harness/surfaces.ts';
import { givenWorld, testDb, type World } from '../harness/world.ts';

/**
 * The planner knows nothing about new rows until the next ANALYZE, and a prepared statement keeps the plan that was made while the
 * tables were empty. Neither may make a statement read many more rows than it reads with statistics.
 */

/** How many rows a statement may read. */
const mostRows = (withStatistics: number) => 2 * withStatistics + 100;

/**
 * Only statistics tell which of several filters finds fewer cards. Without any, these lists read the cards of the group or project
 * that they name.
 */
const SEVERAL_INDEXES = ['cards.list', 'cards.list by ones in no group'];

/** The tables are copied before the calls. The statements of the calls are executed on the copies, and undone. */
const COPIES = ['with_statistics', 'without_statistics', 'planned_while_empty'] as const;
type Copy = (typeof COPIES)[number];

type InputOf = (world: World, procedure: Procedure) => Promise<unknown>;
const usualInput: InputOf = async (world, procedure) => inputFor(procedure, await givenStartState(procedure, world));

/** Every procedure, and what members call most. */
const CALLS: [string, { procedure: string; inputOf: InputOf; isOfMember?: boolean; isRemembered?: boolean }][] = [
  ...procedures.map(({ name }) => [name, { procedure: name, inputOf: usualInput }] as const),
  ...['boards.get', 'cards.create', 'cards.get', 'comments.create'].map(
    (procedure) => [`${procedure} of a member`, { procedure, inputOf: usualInput, isOfMember: true }] as const,
  ),
  ['boards.list of a member', { procedure: 'boards.list', inputOf: async () => ({}), isOfMember: true }],
  ...procedures.flatMap(({ name: procedure, meta, type }) =>
    meta.confirms && type === 'query'
      ? [
          [
            `${procedure} of a member who called before`,
            { procedure, inputOf: usualInput, isOfMember: true, isRemembered: true },
          ] as const,
        ]
      : [],
  ),
  ...CARD_FILTERS.map(
    ([what, inputOf]) => [`cards.list by ${what}`, { procedure: 'cards.list', inputOf, isOfMember: true }] as const,
  ),
  [
    'events.list of a card',
    {
      procedure: 'events.list',
      inputOf: async (world: World) => givenHistory(await testDb(), world),
      isOfMember: true,
    },
  ],
].map(([name, call]) => [name as string, call as (typeof CALLS)[number][1]]);

describe.skipIf(!databaseUrl)('without statistics', () => {
  withOwnDatabase();
  const sent = new Map<string, Sent[]>();
  let client: pg.Client;

  beforeAll(async () => {
    const db = await testDb();
    const { name } = oneRow(await query(db, sql<{ name: string }>`select current_database() as name`));
    client = new pg.Client({ connectionString: Object.assign(new URL(databaseUrl!), { pathname: name }).href });
    await client.connect();
    await fillWithCards(db, 4000);
    await skipIds(db);
    const calls = [];
    for (const [name, { procedure: called, inputOf, isOfMember, isRemembered }] of CALLS) {
      const world = await givenWorld();
      const procedure = findProcedure(called)!;
      const input = await inputOf(world, procedure);
      const caller = isOfMember ? world.asMember : allowedCaller(world, procedure);
      // Without an idempotency key, which takes the longer way.
      const repeat = () => caller.post(procedure.rest!.path, input);
      if (isRemembered) await repeat();
      calls.push({ name, call: isRemembered ? repeat : () => overRpc(caller, procedure, input) });
    }
    await fillWorlds(db);
    await copyTables(client);
    for (const { name, call } of calls) sent.set(name, await capture(call));
    await planWhileEmpty(client, [...sent.values()].flat());
  }, 240_000);
  afterAll(() => client?.end());

  it.each(CALLS.map(([name]) => name).filter((name) => !SEVERAL_INDEXES.includes(name)))(
    '%s reads not many more rows',
    async (name) => {
      const statements = sent.get(name) ?? [];
      if (!WITHOUT_STATEMENTS.includes(name)) expect(statements).not.toEqual([]);
      const known = await rowsRead(client, 'with_statistics', statements);
      const reads = {
        custom: await rowsRead(client, 'without_statistics', statements, 'force_custom_plan'),
        generic: await rowsRead(client, 'without_statistics', statements),
        stale: await rowsRead(client, 'planned_while_empty', statements),
      };

      statements.forEach(({ text }, at) => {
        for (const [plan, rows] of Object.entries(reads))
          expect.soft(rows[at], `${plan} plan: ${text}`).toBeLessThanOrEqual(mostRows(known[at]!));
      });
    },
  );
});

/** Copies all tables with their rows; the last copy gets its rows after its statements have been planned. */
async function copyTables(client: pg.Client): Promise<void> {
  for (const copy of COPIES) {
    await client.query(`create schema ${copy}`);
    for (const { name } of await tablesOf(client)) {
      await client.query(
        `create table ${copy}.${name} (like public.${name} including all) with (autovacuum_enabled = off)`,
      );
      if (copy !== 'planned_while_empty') await copyRows(client, 'public', copy, name);
      if (copy === 'with_statistics') await client.query(`analyze ${copy}.${name}`);
    }
  }
}

async function copyRows(client: pg.Client, from: string, to: string, table: string): Promise<void> {
  await client.query(`insert into ${to}.${table} overriding system value select * from ${from}.${table}`);
  await client.query(
    `select setval(pg_get_serial_sequence($1, 'id'), 10000000)
      from information_schema.columns where table_schema = 'public' and table_name = $2 and column_name = 'id' and is_identity = 'YES'`,
    [`${to}.${table}`, table],
  );
  const { rows } = await client.query(
    'select pg_get_triggerdef(oid) as made from pg_trigger where tgrelid = $1::regclass and not tgisinternal',
    [`public.${table}`],
  );
  for (const { made } of rows) await client.query(made.replace(` ON public.${table} `, ` ON ${to}.${table} `));
}

async function tablesOf(client: pg.Client): Promise<{ name: string }[]> {
  return (await client.query("select tablename as name from pg_tables where schemaname = 'public'")).rows;
}

/** The names of the statements that were planned on empty tables. */
const names = new Map<string, string>();

async function planWhileEmpty(client: pg.Client, statements: Sent[]): Promise<void> {
  await client.query('set search_path = planned_while_empty, public');
  await client.query('set plan_cache_mode = force_generic_plan');
  for (const { text, values } of statements.filter(isPrepared)) {
    if (names.has(text)) continue;
    const name = `planned_${names.size}`;
    names.set(text, name);
    await client.query(`prepare ${name} as ${text}`);
    await client.query(`explain ${executed(name, values)}`);
  }
  for (const { name } of await tablesOf(client))
    await copyRows(client, 'without_statistics', 'planned_while_empty', name);
}

/** How many rows each statement reads, in its order; then all are undone. */
async function rowsRead(
  client: pg.Client,
  copy: Copy,
  statements: Sent[],
  mode = 'force_generic_plan',
): Promise<number[]> {
  const commands = statements.flatMap((statement) => {
    const planned = copy === 'planned_while_empty' ? names.get(statement.text) : undefined;
    const name = planned ?? `tried_${tried++}`;
    return [
      `set local plan_cache_mode = ${isPrepared(statement) ? mode : 'force_custom_plan'}`,
      ...(planned ? [] : [`prepare ${name} as ${statement.text}`]),
      `explain (analyze, timing off, format json) ${executed(name, statement.values)}`,
      ...(planned ? [] : [`deallocate ${name}`]),
    ];
  });
  try {
    return (await sendAll(client, ['begin', `set local search_path = ${copy}, public`, ...commands])).map(rowsIn);
  } finally {
    await client.query('rollback');
  }
}
let tried = 0;

type Plan = {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Rows Removed by Join Filter'?: number;
  Plans?: Plan[];
};

/** Rows that scans read, and pairs that a join compares. */
function rowsIn(plan: Plan): number {
  const { 'Node Type': type, Plans = [] } = plan;
  const isRead = type.endsWith('Scan') && type !== 'Bitmap Index Scan';
  const dropped =
    (plan['Rows Removed by Filter'] ?? 0) +
    (plan['Rows Removed by Index Recheck'] ?? 0) +
    (plan['Rows Removed by Join Filter'] ?? 0);
  const own = ((isRead ? plan['Actual Rows'] : 0) + dropped) * plan['Actual Loops'];
  return own + Plans.reduce((sum, inner) => sum + rowsIn(inner), 0);
}
