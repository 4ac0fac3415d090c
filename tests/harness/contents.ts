import { sql } from 'kysely';
import { entities } from '../../server/database/entities.ts';
import { query, transact } from '../../server/database/query.ts';
import { tokens } from './service.ts';
import { testDb } from './world.ts';

/** All rows of the database, by table. */
export type Contents = Record<string, object[]>;

/** Referenced tables come before those that refer to them. */
const tables = entities.map(({ meta: { tableName: name, properties } }) => {
  const hasSequence = 'id' in properties && properties.id.autoincrement;
  return { name, table: sql.table(name), hasSequence };
});

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

/** Replaces all rows of the database by these, and sets the sequences after them. */
export async function replaceContents(contents: Contents): Promise<void> {
  await transact(await testDb(), async (db) => {
    for (const { table } of tables.toReversed()) await query(db, sql`delete from ${table}`);
    for (const { name, table } of tables) {
      if (!contents[name]?.length) continue;
      const rows = JSON.stringify(contents[name]);
      await query(db, sql`insert into ${table} select * from json_populate_recordset(null::${table}, ${rows})`);
    }
    const nextIds = tables.flatMap(({ name, table, hasSequence }) => {
      const sequence = sql`pg_get_serial_sequence(${name}, 'id')`;
      return hasSequence ? sql`(select setval(${sequence}, coalesce(max(id), 0) + 1, false) from ${table})` : [];
    });
    await query(db, sql`select ${sql.join(nextIds)}`);
  });
}

/** For comparing the results of two calls: hides new timestamps and random ids. */
export function comparable(value: unknown, before: Contents): unknown {
  const known = JSON.stringify(before);
  const text = JSON.stringify(value, (key, part) => {
    if (typeof part !== 'string' || known.includes(part)) return part;
    if (key === 'token') return tokens.read(part);
    return key.endsWith('_at')
      ? 'a new time'
      : part.replace(UUID, (uuid) => (known.includes(uuid) ? uuid : 'a new id'));
  });
  return JSON.parse(text);
}

const UUID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;
