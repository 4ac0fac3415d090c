import { type RawBuilder, sql } from 'kysely';
import { entities } from '../../server/database/entities.ts';
import { type Db, oneRow, query, transact } from '../../server/database/query.ts';
import { testDb } from './world.ts';

/** All rows of the database, by table. */
export type Contents = Record<string, object[]>;

const tables = entities.map(({ meta: { tableName: name, properties } }) => {
  const { id } = properties as { id?: { autoincrement?: boolean; defaultRaw?: string } };
  const hasSequence = id?.autoincrement || id?.defaultRaw?.startsWith('nextval');
  return { name, table: sql.table(name), hasSequence };
});
type Table = (typeof tables)[number];

export const readContents = () =>
  callFunction<Contents>(
    'contents',
    tables.map(({ name, table }) => sql`${sql.lit(name)}, (select coalesce(json_agg(t), '[]') from ${table} t)`),
    'json_build_object',
  );

/** Something about each table that every committed change of a row changes. */
export const readVersions = () =>
  callFunction<unknown>(
    'versions',
    tables.map(({ table }) => sql`(select count(*) || ' ' || coalesce(sum(xmin::text::bigint), 0) from ${table})`),
    'json_build_array',
  );

/** The functions that a database has. */
const known = new WeakMap<Db, Map<string, Promise<unknown>>>();

/** Reads by a function, whose plan PostgreSQL keeps: planning takes ten times as long as reading. */
async function callFunction<Result>(name: string, parts: RawBuilder<unknown>[], together: string): Promise<Result> {
  const db = await testDb();
  const functions = known.get(db) ?? new Map<string, Promise<unknown>>();
  known.set(db, functions);
  const called = sql`testing.${sql.ref(name)}`;
  const body = sql`return (select ${sql.raw(together)}(${sql.join(parts)}));`;
  const created = functions.get(name) ?? createFunction(db, called, body);
  functions.set(name, created);
  await created;
  return oneRow(await query(db, sql<{ result: Result }>`select ${called}() as result`)).result;
}

async function createFunction(db: Db, called: RawBuilder<unknown>, body: RawBuilder<unknown>): Promise<void> {
  await query(db, sql`create schema if not exists testing`);
  await query(db, sql`create or replace function ${called}() returns json language plpgsql as $$ begin ${body} end $$`);
}

/** Brings the rows back that the database had. */
export function restoreContents(before: Contents, now: Contents): Promise<void> {
  const isChanged = ({ name }: Table) => JSON.stringify(before[name]) !== JSON.stringify(now[name]);
  return replaceRows(tables.filter(isChanged), before);
}

export const emptyDatabase = () => replaceRows(tables, {});

/** Without checks of references, so that tables can change in any order. Sets the sequences after the rows. */
async function replaceRows(changed: Table[], contents: Contents): Promise<void> {
  const filled = changed.filter(({ name }) => contents[name]?.length);
  await transact(await testDb(), async (db) => {
    await query(db, sql`set local session_replication_role = replica`);
    if (changed.length > 0) await query(db, atOnce(changed.map(({ table }) => sql`delete from ${table}`)));
    for (const { name, table } of filled) {
      const rows = JSON.stringify(contents[name]);
      await query(db, sql`insert into ${table} select * from json_populate_recordset(null::${table}, ${rows})`);
    }
    await query(db, sql`select ${sql.join(NEXT_IDS)}`);
  });
}

/** Many statements in one round trip. */
const atOnce = (statements: RawBuilder<unknown>[]) =>
  sql`with ${sql.join(statements.map((statement, at) => sql`${sql.ref(`part_${at}`)} as (${statement})`))} select 1`;

const NEXT_IDS = tables.flatMap(({ name, table, hasSequence }) => {
  const sequence = sql`pg_get_serial_sequence(${name}, 'id')`;
  return hasSequence ? sql`(select setval(${sequence}, coalesce(max(id), 0) + 1, false) from ${table})` : [];
});
