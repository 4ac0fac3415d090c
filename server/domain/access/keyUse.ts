import { sql } from 'kysely';
import { type Db, query } from '../../database/query.ts';

/** Stores the minute in which keys were used. */
export async function recordUse(db: Db, ids: number[]): Promise<void> {
  await query(
    db,
    sql`update api_keys set last_used_at = ${THIS_MINUTE} where id = any(${ids}::int[]) and ${isUseDue('api_keys')}`,
  );
}

const THIS_MINUTE = sql`date_trunc('minute', now())`;

/** Whether the use of a key in this minute is not stored yet. */
export const isUseDue = (alias: string) =>
  sql<boolean>`coalesce(${sql.ref(`${alias}.last_used_at`)} < ${THIS_MINUTE}, true)`;
