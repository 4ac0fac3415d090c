import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Migrator } from '@mikro-orm/migrations';
import { sql } from 'kysely';
import { isStartFailure, startFailure } from '../runtime/startFailure.ts';
import type { Database } from './connect.ts';
import { adoptDatabase, noticeOf } from './incarnation.ts';
import { finishOwnUpgrade, mustKnowLevel } from './level.ts';
import { MIGRATION_LOCK, retryLocked, SET_SHORT_LOCK_TIMEOUT } from './lockRetry.ts';
import { watchTransactions } from './openTransactions.ts';
import { type Db, ping, query, queryOne } from './query.ts';

/** The type that the migrator expects. */
type Transaction = Db & { savepoint: unknown };

type Listener = {
  onMigration?: (name: string) => void;
  /** Why it may take long: another node runs migrations, or a transaction stays open. */
  onWait?: (line: string) => void;
  /** What an operator should know of a restored database. */
  onAdopted?: (line: string) => void;
};

/**
 * Runs all pending migrations one after the other, each in a short transaction or in steps (`StepwiseMigration`). What is done
 * stays done: after a failure, the next start goes on with the migration that failed.
 */
export async function migrate(database: Database, listener: Listener = {}): Promise<string[]> {
  await mustKnowLevel(database.db);
  const applied = (await pendingMigrations(database.db)).length > 0 ? await runPending(database, listener) : [];
  await finishOwnUpgrade(database);
  const notice = noticeOf(await adoptDatabase(database.db));
  if (notice) listener.onAdopted?.(notice);
  return applied;
}

function runPending(database: Database, { onMigration, onWait }: Listener): Promise<string[]> {
  const unwatch = database.isEmbedded || !onWait ? undefined : watchTransactions(database.db, onWait);
  return database
    .withoutTimeouts(async (database) => {
      const migrator = (await database.orm()).migrator as Migrator;
      migrator.on('migrating', ({ name }) => onMigration?.(name));
      await underMigrationLock(database, onWait, (transaction) => prepareTable(migrator, transaction));
      const applied: string[] = [];
      for (const name of await migrationNames()) {
        try {
          const ran = database.isEmbedded
            ? await migrator.up({ migrations: [name] })
            : await runUnderLock(database, migrator, name, onWait);
          if (ran.length > 0) applied.push(name);
        } catch (error) {
          if (isStartFailure(error)) throw error;
          const { message } = error as Error;
          throw startFailure(
            `${name} failed: ${message}. The migrations before it are done; a new start goes on.`,
            error,
          );
        }
      }
      return applied;
    })
    .finally(unwatch);
}

/**
 * Nodes that start at once may each run some of the migrations. One in steps uses a second connection, while this transaction
 * holds the lock and then records it.
 */
function runUnderLock(database: Database, migrator: Migrator, name: string, onWait?: (line: string) => void) {
  return retryLocked(() =>
    underMigrationLock(database, onWait, async (transaction) => {
      await query(transaction, sql.raw(SET_SHORT_LOCK_TIMEOUT));
      return migrator.up({ migrations: [name], transaction });
    }),
  );
}

/** The names of the executed migrations; undefined if there are no tables yet. */
export async function executedMigrations(db: Db): Promise<string[] | undefined> {
  const table = await queryOne(db, sql<{ name: string | null }>`select to_regclass('mikro_orm_migrations') as name`);
  if (table.name === null) return undefined;
  return (await query(db, sql<{ name: string }>`select name from mikro_orm_migrations`)).map(({ name }) => name);
}

export async function pendingMigrations(db: Db): Promise<string[]> {
  const executed = new Set(await executedMigrations(db));
  return (await migrationNames()).filter((name) => !executed.has(name));
}

export async function migrationNames(): Promise<string[]> {
  const files = await readdir(join(import.meta.dirname, 'migrations'));
  // The packed service has .js files.
  return files.map((file) => file.replace(/\.[jt]s$/, '')).toSorted();
}

/** Migrations that were renamed after they had run. The old names stay in the table for nodes of the previous version. */
const RENAMED = {
  Migration20261115000000: 'Migration20261115000000_create_tables',
  Migration20261115000001: 'Migration20261115000001_same_tenant_references',
  Migration20261115041535: 'Migration20261115041535_publication_second_factor_checkout',
};

async function prepareTable(migrator: Migrator, transaction: Transaction): Promise<void> {
  const storage = migrator.getStorage();
  storage.setMasterMigration(transaction);
  await storage.ensureTable().finally(() => storage.unsetMasterMigration());
  await query(
    transaction,
    sql`
      insert into mikro_orm_migrations (name)
      select value from json_each_text(${JSON.stringify(RENAMED)}::json)
      where exists (select from mikro_orm_migrations where name = key)
        and not exists (select from mikro_orm_migrations where name = value)`,
  );
}

const LONGEST_WAIT_MILLISECONDS = 10 * 60_000;
/** About two seconds; nodes that start at once usually wait less. */
const ATTEMPTS_BEFORE_NOTICE = 20;

/**
 * Runs work in a transaction that holds the migration lock. If the lock is taken, retries with a new transaction: waiting
 * holds no connection, and a transaction-level lock works behind a pooler.
 */
export async function underMigrationLock<Result>(
  { orm, db }: Database,
  onWait: ((line: string) => void) | undefined,
  work: (transaction: Transaction) => Promise<Result>,
): Promise<Result> {
  const { em } = await orm();
  const latest = performance.now() + LONGEST_WAIT_MILLISECONDS;
  for (let attempt = 1; performance.now() < latest; attempt++) {
    await ping(db).catch((error: Error) => {
      throw startFailure(`DATABASE_URL: ${error.message}.`, error);
    });
    const done = await em.fork().transactional(async (em) => {
      const transaction = em.getTransactionContext<Transaction>()!;
      const lock = await queryOne(
        transaction,
        sql<{ isTaken: boolean }>`select not pg_try_advisory_xact_lock(${MIGRATION_LOCK}) as "isTaken"`,
      );
      return lock.isTaken ? undefined : { result: await work(transaction) };
    });
    if (done) return done.result;
    if (attempt === ATTEMPTS_BEFORE_NOTICE)
      onWait?.('Another node is running migrations: waiting for up to 10 minutes.');
    await sleep(100);
  }
  throw startFailure('DATABASE_URL: another node has been running migrations for 10 minutes; check what it waits for.');
}
