import { sql } from 'kysely';
import { bulkTransaction } from '../../database/bulk.ts';
import { type Db, query } from '../../database/query.ts';

/** A transaction that changes a master board: one at a time for each board, and not during a step of a sync or push. */
export function templateTransaction<Result>(
  db: Db,
  board_id: number,
  work: (db: Db) => Promise<Result>,
): Promise<Result> {
  return bulkTransaction(db, async (db) => {
    await query(db, sql`select pg_advisory_xact_lock(${TEMPLATE_LOCKS}, ${board_id})`);
    return work(db);
  });
}

/** A transaction that copies a master board to projects. Shared: steps for other projects run at the same time. */
export function stepTransaction<Result>(db: Db, board_id: number, work: (db: Db) => Promise<Result>): Promise<Result> {
  return bulkTransaction(db, async (db) => {
    await query(db, sql`select pg_advisory_xact_lock_shared(${TEMPLATE_LOCKS}, ${board_id})`);
    return work(db);
  });
}

/** The first key of the advisory locks of master boards ("TMPL" in ASCII); the second is the board's id. */
export const TEMPLATE_LOCKS = 1_414_352_972;
