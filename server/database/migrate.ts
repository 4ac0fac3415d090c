import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { query } from './query.ts';

/**
 * Brings the tables up to date; all pending migrations, or none. Nodes that start together wait for the first of them.
 * The lock belongs to a transaction of its own, so that it works behind a pooler too; the embedded database has one
 * connection and one process, and needs none.
 */
export async function migrate({ orm, fork, isEmbedded }: Database): Promise<string[]> {
  const run = async () => (await orm.migrator.up()).map(({ name }) => name);
  if (isEmbedded) return run();

  return fork().transactional(async (em) => {
    await query(
      em,
      sql`select set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
      set_config('idle_in_transaction_session_timeout', '0', true)`,
    );
    await query(em, sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    return run();
  });
}

/** Any number that nothing else in the database locks. */
const MIGRATION_LOCK = 3_735_928_559;
