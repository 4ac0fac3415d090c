import { sql } from 'kysely';
import { type Db, query } from './query.ts';

const CHECKPOINT_MILLISECONDS = 5 * 60_000;
const VACUUM_MILLISECONDS = 10_000;

/** As autovacuum has it: so many rows, and such a part of the table, change before it is vacuumed again. */
const LEAST_CHANGED_ROWS = 50;
const LEAST_CHANGED_PART = 0.1;

/** Does what a server does in the background, and the embedded database never does by itself. Returns how to stop it. */
export function startUpkeep(db: Db): () => void {
  const timers = [
    // Without checkpoints its log would grow until it is closed.
    setInterval(() => query(db, sql`checkpoint`).catch(ignore), CHECKPOINT_MILLISECONDS),
    setInterval(() => vacuumChanged(db).catch(ignore), VACUUM_MILLISECONDS),
  ];
  for (const timer of timers) timer.unref();
  return () => timers.forEach(clearInterval);
}

/** The next turn does it. */
const ignore = () => undefined;

/**
 * Vacuums and analyzes the tables that changed much. One that was never analyzed is taken for a table of a few rows, and the
 * plans for it read all that it has; one that was never vacuumed can't be counted by its indexes alone.
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
  // One statement each: others have their turn in between.
  for (const { name } of changed) await query(db, sql`vacuum (analyze) ${sql.table(name)}`);
}
