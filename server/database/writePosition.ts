import { type RawBuilder, sql } from 'kysely';
import { prepared } from './prepared.ts';
import { type Db, query, queryOne, withShortTimeout } from './query.ts';

/**
 * How far a user has written, so that a replica serves their reads only once it has replayed that. Used only with replicas.
 *
 * `write_positions` and `write_epoch` are unlogged: they cost no flush, and PostgreSQL empties them whenever a position may be
 * lost, after a crash or the promotion of a replica. A new epoch then begins. Its id is also in `replicated_epoch`, which is
 * logged. A replica with that id follows this primary, and has replayed all that was written before the epoch began.
 */

export const POSITION_TABLES = ['write_positions', 'write_epoch', 'replicated_epoch'];

/** What a replica needs to have replayed for a user; the epoch is null until a node begins one. */
export type Written = { epoch: string | null; position: number };

/** A position in the log as a number of bytes; exact up to 8 PiB. */
export const inBytes = (position: RawBuilder<unknown>) => sql<number>`(${position} - '0/0')::float8`;

/** Columns of the statement that finds a caller. */
export const writtenBy = (userId: RawBuilder<number>) => sql`
  (select epoch::text from write_epoch) as write_epoch,
  coalesce((select ${inBytes(sql`position`)} from write_positions w where w.user_id = ${userId}), 0) as write_position, `;

/** Stores that a user has written up to here, after the commit. The larger position stays if calls of a user end at once. */
export const storePosition = prepared<{ userId: number }, never>(
  (value) => sql`
    insert into write_positions as w (user_id, position) values (${value('userId')}, pg_current_wal_insert_lsn())
    on conflict (user_id) do update set position = greatest(w.position, excluded.position)`,
);

/** How far the primary has written, its epoch, and when it started, which tells servers apart. */
export async function readPrimary(db: Db): Promise<Written & { server: string }> {
  const flushed = inBytes(sql`pg_current_wal_flush_lsn()`);
  const read = sql<Written & { server: string }>`
    select ${flushed} as position, (select epoch::text from write_epoch) as epoch, pg_postmaster_start_time()::text as server`;
  return queryOne(db, withShortTimeout(read));
}

/**
 * Begins an epoch: replicas are used again once they have replayed it, and with it the migrations before it.
 *
 * - `begun`: the id of the epoch.
 * - `unreachable`: positions from a backup of another cluster, which this one may not reach for years.
 */
export async function beginEpoch(db: Db): Promise<void> {
  await query(
    db,
    sql`
      with begun as (
        insert into write_epoch (id, epoch) values (1, gen_random_uuid())
        on conflict (id) do update set epoch = excluded.epoch returning epoch
      ), unreachable as (
        delete from write_positions where position > pg_current_wal_insert_lsn()
      )
      insert into replicated_epoch (id, epoch) select 1, epoch from begun
      on conflict (id) do update set epoch = excluded.epoch`,
  );
}
