import { sql } from 'kysely';
import { entities } from './entities.ts';
import { type Db, query, transact } from './query.ts';
import type { Row } from './tables.ts';

/** Removes all rows, except for one user and their sessions. New rows get new ids. */
export async function emptyTables(db: Db, keptUser: Pick<Row<'users'>, 'id'>): Promise<void> {
  const kept = new Map([
    ['users', sql`where id <> ${keptUser.id}`],
    ['sessions', sql`where user_id <> ${keptUser.id}`],
  ]);
  await transact(db, async (db) => {
    // Rows go in any order, without checks of references. Truncating so many tables takes five times as long.
    await query(db, sql`set local session_replication_role = replica`);
    for (const { meta } of entities) {
      await query(db, sql`delete from ${sql.table(meta.tableName)} ${kept.get(meta.tableName) ?? sql``}`);
    }
  });
}
