import { sql } from 'kysely';
import { INCARNATIONS } from './incarnation.ts';
import { STATE_TABLE } from './level.ts';
import { type Db, query, transact } from './query.ts';
import type { Row } from './tables.ts';

const KEPT_TABLES = ['mikro_orm_migrations', STATE_TABLE, INCARNATIONS];

/** Removes all rows, except for one user, their sessions, and what is known of the database itself. New rows get new ids. */
export async function emptyTables(db: Db, keptUser: Pick<Row<'users'>, 'id'>): Promise<void> {
  const kept = new Map([
    ['users', sql`where id <> ${keptUser.id}`],
    ['sessions', sql`where user_id <> ${keptUser.id}`],
  ]);
  await transact(db, async (db) => {
    // From the database: the list of entities would load the ORM.
    const tables = await query(
      db,
      sql<{ name: string }>`
        select tablename as name from pg_tables
        where schemaname = current_schema and tablename <> all(${KEPT_TABLES})`,
    );
    // Rows go in any order, without checks of references. Truncating so many tables takes five times as long.
    await query(db, sql`set local session_replication_role = replica`);
    for (const { name } of tables) await query(db, sql`delete from ${sql.table(name)} ${kept.get(name) ?? sql``}`);
  });
}
