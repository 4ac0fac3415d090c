import { setTimeout as sleep } from 'node:timers/promises';
import type { Migrator } from '@mikro-orm/migrations';
import { sql } from 'kysely';
import { isStartFailure, startFailure } from '../runtime/startFailure.ts';
import type { Database } from './connect.ts';
import { type Db, NO_TIMEOUT, oneRow, ping, query } from './query.ts';

/** The type that the migrator expects. */
type Transaction = Db & { savepoint: unknown };

/**
 * Runs all pending migrations, or none. Everything runs on the connection that holds the lock: with a second connection each,
 * nodes that start at once on a small pool could wait for each other forever.
 */
export async function migrate(database: Database, onWait: () => void = () => {}): Promise<string[]> {
  const migrator = database.orm.migrator as Migrator;
  const storage = migrator.getStorage();
  let current: string | undefined;
  const remember = ({ name }: { name: string }) => {
    current = name;
  };
  migrator.on('migrating', remember);

  try {
    // Create the migrator's table first: it would otherwise use another connection.
    await underMigrationLock(database, onWait, async (transaction) => {
      storage.setMasterMigration(transaction);
      await storage.ensureTable().finally(() => storage.unsetMasterMigration());
    });
    await migrator.getExecuted();
    return await underMigrationLock(database, onWait, async (transaction) => {
      await recordNewNames(transaction);
      const applied = await migrator.up({ transaction });
      return applied.map(({ name }) => name);
    });
  } catch (error) {
    if (isStartFailure(error)) throw error;
    const reason = [current, (error as Error).message].filter(Boolean).join(': ');
    throw startFailure(`The migrations failed, and nothing was changed: ${reason}.`, error);
  } finally {
    migrator.off('migrating', remember);
  }
}

/** Migrations that were renamed after they had run. The old names stay in the table for nodes of the previous version. */
const RENAMED = {
  Migration20261115000000: 'Migration20261115000000_create_tables',
  Migration20261115000001: 'Migration20261115000001_same_tenant_references',
  Migration20261115041535: 'Migration20261115041535_publication_second_factor_checkout',
};

async function recordNewNames(db: Db): Promise<void> {
  await query(
    db,
    sql`
      insert into mikro_orm_migrations (name)
      select value from json_each_text(${JSON.stringify(RENAMED)}::json)
      where exists (select from mikro_orm_migrations where name = key)
        and not exists (select from mikro_orm_migrations where name = value)`,
  );
}

/** The key of the advisory lock; nothing else uses it. */
const MIGRATION_LOCK = 3_735_928_559;
const LONGEST_WAIT_MILLISECONDS = 10 * 60_000;
/** About two seconds; nodes that start at once usually wait less. */
const ATTEMPTS_BEFORE_NOTICE = 20;

/**
 * Runs work in a transaction that holds the migration lock. If the lock is taken, retries with a new transaction: waiting
 * holds no connection, and a transaction-level lock works behind a pooler.
 */
export async function underMigrationLock<Result>(
  { orm, db }: Database,
  onWait: () => void,
  work: (transaction: Transaction) => Promise<Result>,
): Promise<Result> {
  const latest = performance.now() + LONGEST_WAIT_MILLISECONDS;
  for (let attempt = 1; performance.now() < latest; attempt++) {
    await ping(db).catch((error: Error) => {
      throw startFailure(`DATABASE_URL: ${error.message}.`, error);
    });
    const done = await orm.em.fork().transactional(async (em) => {
      const transaction = em.getTransactionContext<Transaction>()!;
      const lock = await query(
        transaction,
        sql<{ isTaken: boolean }>`${sql.raw(NO_TIMEOUT)}
          select not pg_try_advisory_xact_lock(${MIGRATION_LOCK}) as "isTaken",
          set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
          set_config('idle_in_transaction_session_timeout', '0', true)`,
      );
      return oneRow(lock).isTaken ? undefined : { result: await work(transaction) };
    });
    if (done) return done.result;
    if (attempt === ATTEMPTS_BEFORE_NOTICE) onWait();
    await sleep(100);
  }
  throw startFailure('DATABASE_URL: another node has been running migrations for 10 minutes; check what it waits for.');
}
