import { type RawBuilder, sql } from 'kysely';
import { entities } from '../../server/database/entities.ts';
import { query, transact } from '../../server/database/query.ts';
import { testDb } from './world.ts';

/** All rows of the database, by table. */
export type Contents = Record<string, object[]>;

const tables = entities.map(({ meta: { tableName: name, properties } }) => {
  const { id } = properties as { id?: { autoincrement?: boolean; defaultRaw?: string } };
  const hasSequence = id?.autoincrement || id?.defaultRaw?.startsWith('nextval');
  return { name, table: sql.table(name), hasSequence };
});
type Table = (typeof tables)[number];

export async function readContents(): Promise<Contents> {
  const parts = tables.map(
    ({ name, table }) => sql`${sql.lit(name)}, (select coalesce(json_agg(t), '[]') from ${table} t)`,
  );
  const [row] = await query(
    await testDb(),
    sql<{ contents: Contents }>`select json_build_object(${sql.join(parts)}) as contents`,
  );
  return row!.contents;
}

/** Something about each table that every committed change of a row changes. */
export async function readVersions(): Promise<unknown> {
  const parts = tables.map(
    ({ table }) => sql`(select count(*) || ' ' || coalesce(sum(xmin::text::bigint), 0) from ${table})`,
  );
  return query(await testDb(), sql`select array[${sql.join(parts)}] as versions`);
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
