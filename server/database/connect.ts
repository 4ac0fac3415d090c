import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MikroORM } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/postgresql';
import { Kysely } from 'kysely';
import type pg from 'pg';
import { databaseNameOf, hostsOf } from '../runtime/databaseUrl.ts';
import type { Settings } from '../runtime/env.ts';
import type { Log } from '../runtime/log.ts';
import { isStartFailure, startFailure } from '../runtime/startFailure.ts';
import { type BulkPace, EMBEDDED_PACE, SERVER_PACE } from './bulk.ts';
import { damaged } from './embedded/damage.ts';
import type { Engine } from './embedded/engine.ts';
import { embeddedDirectory, isInMemory } from './embedded/location.ts';
import { refuseMissingFiles } from './embedded/missingFiles.ts';
import { FINISHED, isFinished, type Opening, openDirectory } from './embedded/opening.ts';
import { startUpkeep } from './embedded/upkeep.ts';
import type { Lane, PoolLoad } from './lane.ts';
import { lanes } from './prepared.ts';
import { type Db, ping } from './query.ts';

export type Database = {
  /** For migrations and checks of the tables. The embedded database loads it when first asked: requests don't need it. */
  orm: () => Promise<MikroORM>;
  /** Shared by all requests: it has no state between statements. */
  db: Db;
  isEmbedded: boolean;
  /** Rejected if it can't be opened. Settled, unless it was opening already when it was connected. */
  opened: Promise<void>;
  bulkPace: BulkPace;
  /** The embedded database lacks the extension that the index needs. */
  hasSearchIndex: boolean;
  /** The connections to a server; undefined for the embedded database, which has none. */
  connections: () => Connections | undefined;
  /** Whether short reads have connections of their own (`lane.ts`). */
  hasLane: boolean;
  /** For migrations and copies: a second pool to a server, or the embedded database itself, which has no timeouts. */
  withoutTimeouts: <Result>(work: (database: Database) => Promise<Result>) => Promise<Result>;
  close: () => Promise<void>;
};

export type Connections = PoolLoad & { lane: PoolLoad | undefined };

/** Opens the database of the settings: a PostgreSQL server, or the embedded one in `DATA_DIR`, which may be opening already. */
export function connect(
  settings: Settings,
  log?: Log,
  opening?: Opening,
  longestReadMilliseconds?: number,
): Promise<Database> {
  const { DATABASE_URL } = settings;
  return DATABASE_URL
    ? connectToServer({ ...settings, DATABASE_URL }, log, longestReadMilliseconds)
    : openEmbedded(settings, opening);
}

async function connectToServer(
  settings: Settings & { DATABASE_URL: string },
  log?: Log,
  longestReadMilliseconds?: number,
): Promise<Database> {
  const { makeLane } = await import('./lane.ts');
  const laneSize = laneSizeOf(settings.DATABASE_POOL_SIZE);
  let pool: pg.Pool | undefined;
  let lane: Lane | undefined;
  const { openOrm } = await import('./options.ts');
  const orm = await openOrm(
    { ...settings, DATABASE_POOL_SIZE: settings.DATABASE_POOL_SIZE - laneSize },
    {
      log,
      onPool: (created, dropIdle) => {
        pool = created;
        if (laneSize > 0) lane = makeLane(created, laneSize, dropIdle, longestReadMilliseconds);
      },
    },
  );
  const opened = serverDatabase(orm);
  const database: Database = {
    ...opened,
    hasLane: lane !== undefined,
    connections: () => pool && { ...connectionsOf(pool), lane: lane?.load() },
    close: async () => {
      await lane?.close();
      await opened.close();
    },
  };
  if (lane) lanes.set(database.db, lane);
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

/** How many of the connections to a server are the lane for short reads. */
export const laneSizeOf = (connections: number) => (connections < SMALLEST_WITH_LANE ? 0 : LANE_SIZE);
const SMALLEST_WITH_LANE = 8;
const LANE_SIZE = 2;

/** Two connections: one holds the migration lock, the other runs what can't be in a transaction. */
async function withSecondPool<Result>(
  settings: Settings,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const { openOrm } = await import('./options.ts');
  const database = serverDatabase(await openOrm({ ...settings, DATABASE_POOL_SIZE: 2 }, { hasTimeouts: false }));
  try {
    return await work(database);
  } finally {
    // The ORM never releases a connection that was lost before its commit.
    await closeInTime(database);
  }
}

const connectionsOf = ({ totalCount, idleCount, waitingCount, options }: pg.Pool): PoolLoad => ({
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

/** With a timeout, since a hanging connection must not block the exit. */
export async function closeInTime(database: Database): Promise<void> {
  await Promise.race([database.close(), sleep(1000, undefined, { ref: false })]);
}

async function openEmbedded(settings: Settings, begun?: Opening): Promise<Database> {
  const { DATA_DIR } = settings;
  if (isInMemory(DATA_DIR)) return embeddedDatabase(settings);

  const opening = begun ?? (await openDirectory(DATA_DIR));
  const { engine, unlock } = opening;
  const database = await embeddedDatabase(settings, engine);
  const opened = finishOpening(database.db, DATA_DIR, opening);
  if (begun) opened.catch(() => undefined);
  else await opened;
  const stopUpkeep = startUpkeep(database.db);
  return {
    ...database,
    opened,
    close: async () => {
      stopUpkeep();
      await database.close();
      unlock();
    },
  };
}

async function finishOpening(db: Db, dataDirectory: string, { directory, unlock }: Opening): Promise<void> {
  try {
    await ping(db);
    await refuseMissingFiles(db, dataDirectory, directory);
    await writeFile(join(directory, FINISHED), '');
  } catch (error) {
    unlock();
    if (isStartFailure(error)) throw error;
    // PGlite says only that it failed, or throws an errno.
    if (isFinished(directory)) throw damaged(dataDirectory, "PostgreSQL can't open it", error);
    throw startFailure(`DATA_DIR: ${resolve(dataDirectory)} can't be opened: ${reason(error)}.`, error);
  }
}

/** Refuses a `DATA_DIR` without a database, which `connect` would create. */
export function refuseWithoutDatabase(dataDirectory: string): void {
  if (isFinished(embeddedDirectory(dataDirectory))) return;
  throw startFailure(`DATA_DIR: there is no embedded database in ${resolve(dataDirectory)}.`);
}

function serverDatabase(orm: MikroORM): Database {
  const database: Database = {
    orm: async () => orm,
    db: (orm.em as SqlEntityManager).getKysely() as unknown as Db,
    isEmbedded: false,
    opened: Promise.resolve(),
    bulkPace: SERVER_PACE,
    hasSearchIndex: true,
    connections: () => undefined,
    hasLane: false,
    withoutTimeouts: (work) => work(database),
    close: () => orm.close(true),
  };
  return database;
}

async function embeddedDatabase(settings: Settings, engine?: Promise<Engine>): Promise<Database> {
  const { embeddedDialect } = await import('./embedded/embeddedDialect.ts');
  const db: Db = new Kysely({ dialect: await embeddedDialect(settings.DATA_DIR, engine) });
  let orm: Promise<MikroORM> | undefined;
  const database: Database = {
    orm: () => {
      orm ??= import('./options.ts').then(({ openOrm }) => openOrm(settings, { db }));
      return orm;
    },
    db,
    isEmbedded: true,
    opened: Promise.resolve(),
    bulkPace: EMBEDDED_PACE,
    hasSearchIndex: false,
    connections: () => undefined,
    hasLane: false,
    withoutTimeouts: (work) => work(database),
    close: () => db.destroy(),
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
