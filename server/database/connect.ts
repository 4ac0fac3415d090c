import { existsSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MikroORM } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/postgresql';
import type pg from 'pg';
import { databaseNameOf, hostsOf } from '../runtime/databaseUrl.ts';
import type { Settings } from '../runtime/env.ts';
import type { Log } from '../runtime/log.ts';
import { isStartFailure, startFailure } from '../runtime/startFailure.ts';
import { type BulkPace, EMBEDDED_PACE, SERVER_PACE } from './bulk.ts';
import { lockDataDirectory } from './embedded/dataDirectory.ts';
import { refuseStartOnFullDisk } from './embedded/fullDisk.ts';
import { startUpkeep } from './embedded/upkeep.ts';
import { embeddedDirectory, isInMemory, ormOptions } from './options.ts';
import { type Db, ping } from './query.ts';

export type Database = {
  orm: MikroORM;
  /** Shared by all requests: it has no state between statements. */
  db: Db;
  isEmbedded: boolean;
  bulkPace: BulkPace;
  /** The embedded database lacks the extension that the index needs. */
  hasSearchIndex: boolean;
  /** The connections to a server; undefined for the embedded database, which has none. */
  connections: () => Connections | undefined;
  /** For migrations and copies: a second pool to a server, or the embedded database itself, which has no timeouts. */
  withoutTimeouts: <Result>(work: (database: Database) => Promise<Result>) => Promise<Result>;
  close: () => Promise<void>;
};

export type Connections = { used: number; idle: number; pending: number; max: number };

/** Opens the database of the settings: a PostgreSQL server, or the embedded one in `DATA_DIR`. */
export function connect(settings: Settings, log?: Log): Promise<Database> {
  const { DATABASE_URL } = settings;
  return DATABASE_URL ? connectToServer({ ...settings, DATABASE_URL }, log) : openEmbedded(settings);
}

async function connectToServer(settings: Settings & { DATABASE_URL: string }, log?: Log): Promise<Database> {
  let pool: pg.Pool | undefined;
  const orm = await MikroORM.init(
    await ormOptions(settings, {
      log,
      onPool: (created) => {
        pool = created;
      },
    }),
  );
  const connections = () => pool && connectionsOf(pool);
  const database: Database = { ...databaseOf(orm, { isEmbedded: false }), connections };
  // A small pool is for other calls.
  if (settings.DATABASE_POOL_SIZE < SMALL_POOL) database.bulkPace = { ...SERVER_PACE, stepsAtOnce: 1 };
  database.withoutTimeouts = (work) => withSecondPool(settings, work);
  try {
    await expectResponse(database);
    return database;
  } catch (error) {
    await closeInTime(database);
    const [name, hosts] = [databaseNameOf(settings.DATABASE_URL), hostsOf(settings.DATABASE_URL)];
    throw startFailure(`DATABASE_URL: can't use the database ${name} on ${hosts}: ${reason(error)}.`, error);
  }
}

const SMALL_POOL = 4;

/** Two connections: one holds the migration lock, the other runs what can't be in a transaction. */
async function withSecondPool<Result>(
  settings: Settings,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const options = await ormOptions({ ...settings, DATABASE_POOL_SIZE: 2 }, { hasTimeouts: false });
  const orm = await MikroORM.init(options);
  try {
    return await work(databaseOf(orm, { isEmbedded: false }));
  } finally {
    await orm.close(true);
  }
}

const connectionsOf = ({ totalCount, idleCount, waitingCount, options }: pg.Pool): Connections => ({
  used: totalCount - idleCount,
  idle: idleCount,
  pending: waitingCount,
  max: options.max,
});

/** Retries for some seconds, since a busy server may be slow to respond. */
async function expectResponse({ db }: Database): Promise<void> {
  const { isSilence } = await import('./client.ts');
  const latest = performance.now() + LONGEST_SILENCE_MILLISECONDS;
  for (;;) {
    try {
      await ping(db);
      return;
    } catch (error) {
      if (!isSilence(error as Error) || performance.now() > latest) throw error;
    }
  }
}
const LONGEST_SILENCE_MILLISECONDS = 5000;

/** After a failed start: with a timeout, since a hanging connection must not block the exit. */
export async function closeInTime(database: Database): Promise<void> {
  await Promise.race([database.close(), sleep(1000, undefined, { ref: false })]);
}

async function openEmbedded(settings: Settings): Promise<Database> {
  if (isInMemory(settings.DATA_DIR)) {
    return databaseOf(await MikroORM.init(await ormOptions(settings)), { isEmbedded: true });
  }

  const unlock = await lockDataDirectory(settings.DATA_DIR);
  try {
    const directory = embeddedDirectory(settings.DATA_DIR);
    await setUnfinishedAside(directory);
    refuseStartOnFullDisk(resolve(settings.DATA_DIR), { isFirst: !existsSync(directory) });
    const database = databaseOf(await MikroORM.init(await ormOptions(settings)), { isEmbedded: true });
    await ping(database.db);
    await writeFile(join(directory, FINISHED), '');
    const stopUpkeep = startUpkeep(database.db);
    return {
      ...database,
      close: async () => {
        stopUpkeep();
        await database.close();
        unlock();
      },
    };
  } catch (error) {
    unlock();
    if (isStartFailure(error)) throw error;
    throw startFailure(`DATA_DIR: ${resolve(settings.DATA_DIR)} can't be opened: ${reason(error)}.`, error);
  }
}

/** Marks a database directory that was opened successfully. */
const FINISHED = 'deckhand-finished';

const isFinished = (directory: string) => existsSync(join(directory, FINISHED));

/** Refuses a `DATA_DIR` without a database, which `connect` would create. */
export function refuseWithoutDatabase(dataDirectory: string): void {
  if (isFinished(embeddedDirectory(dataDirectory))) return;
  throw startFailure(`DATA_DIR: there is no embedded database in ${resolve(dataDirectory)}.`);
}

/** Renames the directory of an interrupted first start: it can't be opened, and has no data yet. */
async function setUnfinishedAside(directory: string): Promise<void> {
  if (!existsSync(directory) || isFinished(directory)) return;
  await rm(`${directory}.unfinished`, { recursive: true, force: true });
  await rename(directory, `${directory}.unfinished`);
}

function databaseOf(orm: MikroORM, { isEmbedded }: { isEmbedded: boolean }): Database {
  const database: Database = {
    orm,
    db: (orm.em as SqlEntityManager).getKysely() as unknown as Db,
    isEmbedded,
    bulkPace: isEmbedded ? EMBEDDED_PACE : SERVER_PACE,
    hasSearchIndex: !isEmbedded,
    connections: () => undefined,
    withoutTimeouts: (work) => work(database),
    close: () => orm.close(true),
  };
  return database;
}

function reason(error: unknown): string {
  const { code, message, cause } = error as NodeJS.ErrnoException & { cause?: unknown };
  const text = message || code;
  if (text) return text;
  // The embedded database may throw something that is not an Error, such as an errno.
  return cause ? reason(cause) : JSON.stringify(error);
}
