import { sql } from 'kysely';
import { type Db, query } from '../query.ts';

const CHECKPOINT_MILLISECONDS = 5 * 60_000;
const VACUUM_MILLISECONDS = 10_000;

/** The thresholds of autovacuum: a number of changed rows plus a share of the table. */
const LEAST_CHANGED_ROWS = 50;
const LEAST_CHANGED_PART = 0.1;

/** Runs checkpoints and vacuum, which the embedded database does not do by itself. Returns a function that stops them. */
export function startUpkeep(db: Db): () => void {
  const timers = [
    // Without checkpoints the WAL would grow until the database is closed.
    setInterval(() => query(db, sql`checkpoint`).catch(ignore), CHECKPOINT_MILLISECONDS),
    setInterval(() => vacuumChanged(db).catch(ignore), VACUUM_MILLISECONDS),
  ];
  for (const timer of timers) timer.unref();
  return () => timers.forEach(clearInterval);
}

/** The next run retries. */
const ignore = () => undefined;

/**
 * Vacuums and analyzes tables with many changes. The planner takes a table that was never analyzed for a small one and scans
 * it; without vacuum, index-only scans are not possible.
 */
export async function vacuumChanged(db: Db): Promise<void> {
  const changed = await query(
    db,
    sql<{ name: string }>`
      select c.relname as name from pg_class c left join pg_stat_user_tables s on s.relid = c.oid
      where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and case
        when c.reltuples < 0 then pg_relation_size(c.oid) > 0
        else s.n_mod_since_analyze > ${LEAST_CHANGED_ROWS}::int + ${LEAST_CHANGED_PART}::float8 * c.reltuples end`,
  );
  // One statement per table, so that other statements can run in between.
  for (const { name } of changed) await query(db, sql`vacuum (analyze) ${sql.table(name)}`);
}
