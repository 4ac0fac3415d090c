import { sql } from 'kysely';
import { type Db, query } from '../query.ts';

/**
 * Runs work in a transaction without foreign keys and triggers of these tables, so that rows can be inserted in any order: tables
 * refer to themselves and to each other. The owner of the tables may do this; `session_replication_role` is for superusers.
 * Adding the keys again checks all rows at once.
 */
export async function withoutForeignKeys(db: Db, tables: string[], work: () => Promise<void>): Promise<void> {
  const keys = await foreignKeysOf(db, tables);
  for (const { table, name } of keys) {
    await query(db, sql`alter table ${sql.table(table)} drop constraint ${sql.ref(name)}`);
  }
  for (const table of tables) await query(db, sql`alter table ${sql.table(table)} disable trigger user`);

  await work();

  for (const table of tables) await query(db, sql`alter table ${sql.table(table)} enable trigger user`);
  for (const { table, name, definition } of keys) {
    await query(db, sql`alter table ${sql.table(table)} add constraint ${sql.ref(name)} ${sql.raw(definition)}`);
  }
}

type ForeignKey = { table: string; name: string; definition: string };

const foreignKeysOf = (db: Db, tables: string[]) =>
  query(
    db,
    sql<ForeignKey>`
      select t.relname as table, k.conname as name, pg_get_constraintdef(k.oid) as definition
      from pg_constraint k join pg_class t on t.oid = k.conrelid
      where k.contype = 'f' and t.relname = any(${tables}) and t.relnamespace = current_schema()::regnamespace
      order by t.relname, k.conname`,
  );
