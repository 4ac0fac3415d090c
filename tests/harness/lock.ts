import { type RawBuilder, sql } from 'kysely';
import { expect } from 'vitest';
import { query, transact } from '../../server/database/query.ts';
import { testDb } from './world.ts';

/** How many statements wait for a lock. */
async function countWaiting(): Promise<number> {
  const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  return (await query(await testDb(), waiting)).length;
}

/** What a call returns that waits for the locks of these changes until they are committed; on a PostgreSQL server. */
export async function waitingFor<Outcome>(
  changes: RawBuilder<unknown>[],
  call: () => Promise<Outcome>,
): Promise<Outcome> {
  // In an object, since the transaction would wait for a promise.
  const { outcome } = await transact(await testDb(), async (db) => {
    for (const change of changes) await query(db, change);
    const outcome = call();
    await expect.poll(countWaiting).toBe(1);
    return { outcome };
  });
  return outcome;
}
