import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Db, query, transact } from './query.ts';

/** How a sync or push is cut into steps, and how many run at the same time. */
export type BulkPace = { rowsPerStep: number; stepsAtOnce: number; pause: () => Promise<unknown> };

/** A step takes about a second; two use two cores of the server. */
export const SERVER_PACE: BulkPace = { rowsPerStep: 30_000, stepsAtOnce: 2, pause: async () => undefined };

/** The embedded database runs in the thread that serves requests: short steps, and time for other calls after each. */
export const EMBEDDED_PACE: BulkPace = { rowsPerStep: 500, stepsAtOnce: 1, pause: () => setTimeout(10) };

/**
 * A transaction for statements on thousands of rows. It may wait for other bulk work longer than the usual lock timeout.
 * JIT is off, since compiling such a statement takes longer than running it. Sequential scans are off, since the tables grow
 * during the transaction: a plan with such scans soon gets slow, above all in the reference checks, whose plans are cached.
 */
export function bulkTransaction<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  return transact(db, async (db) => {
    await query(db, sql`select set_config('lock_timeout', '120s', true), ${BY_INDEXES}`);
    return work(db);
  });
}

const BY_INDEXES = sql`set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true)`;

/** The same for the rest of a transaction that waits no longer than usual. */
export async function useIndexes(db: Db): Promise<void> {
  await query(db, sql`select ${BY_INDEXES}`);
}

/**
 * Allows only merge joins for the rest of the transaction. Statistics lag while a sync fills a table, and the time of a merge
 * join depends on the real number of rows, not on the planner's estimate. The work memory holds what one step sorts.
 */
export async function allowOnlyMergeJoins(db: Db): Promise<void> {
  await query(
    db,
    sql`select set_config('enable_nestloop', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('work_mem', '32MB', true)`,
  );
}

/** Like `allowOnlyMergeJoins`, with hash joins: faster where wide rows are compared with few others, and as independent of estimates. */
export async function allowNoNestedLoops(db: Db): Promise<void> {
  await query(db, sql`select set_config('enable_nestloop', 'off', true), set_config('work_mem', '32MB', true)`);
}
