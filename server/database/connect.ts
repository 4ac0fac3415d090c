import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MikroORM } from '@mikro-orm/core';
import { sql } from 'kysely';
import type { Settings } from '../env.ts';
import { startFailure } from '../startFailure.ts';
import { embeddedDirectory, IN_MEMORY, ormOptions } from './options.ts';
import { type EntityManager, query } from './query.ts';

export type Database = {
  orm: MikroORM;
  /** A fresh EntityManager, for one request. */
  fork: () => EntityManager;
  isEmbedded: boolean;
  close: () => Promise<void>;
};

/** Opens the database that the settings name: a PostgreSQL server, or the embedded one in `DATA_DIR`. */
export function connect(settings: Settings): Promise<Database> {
  return settings.DATABASE_URL ? connectToServer(settings) : openEmbedded(settings);
}

async function connectToServer(settings: Settings): Promise<Database> {
  const orm = await MikroORM.init(await ormOptions(settings));
  const database = databaseOf(orm, { isEmbedded: false });
  try {
    await query(database.fork(), sql`select 1`);
    return database;
  } catch (error) {
    await orm.close(true);
    const { host, pathname } = new URL(settings.DATABASE_URL!);
    throw startFailure(`DATABASE_URL: no use of ${pathname.slice(1)} on ${host}: ${reason(error)}.`, error);
  }
}

async function openEmbedded(settings: Settings): Promise<Database> {
  if (settings.DATA_DIR === IN_MEMORY) {
    return databaseOf(await MikroORM.init(await ormOptions(settings)), { isEmbedded: true });
  }

  const unlock = await lockDataDirectory(settings.DATA_DIR);
  try {
    const directory = embeddedDirectory(settings.DATA_DIR);
    await setUnfinishedAside(directory);
    const database = databaseOf(await MikroORM.init(await ormOptions(settings)), { isEmbedded: true });
    await query(database.fork(), sql`select 1`);
    await writeFile(join(directory, FINISHED), '');
    const checkpoints = keepLogShort(database);
    return {
      ...database,
      close: async () => {
        clearInterval(checkpoints);
        await database.close();
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw startFailure(`DATA_DIR: ${resolve(settings.DATA_DIR)} can't be opened: ${reason(error)}.`, error);
  }
}

/** In a database directory that was once opened. */
const FINISHED = 'deckhand-finished';

/** A first start that was cut off leaves a directory that can't be opened, and nothing in it that anybody relies on. */
async function setUnfinishedAside(directory: string): Promise<void> {
  if (!existsSync(directory) || existsSync(join(directory, FINISHED))) return;
  await rm(`${directory}.unfinished`, { recursive: true, force: true });
  await rename(directory, `${directory}.unfinished`);
}

const databaseOf = (orm: MikroORM, { isEmbedded }: { isEmbedded: boolean }): Database => ({
  orm,
  fork: () => orm.em.fork() as EntityManager,
  isEmbedded,
  close: () => orm.close(true),
});

/**
 * Two processes on one data directory would silently lose each other's writes. The lock is one of the operating system
 * on a file, by way of SQLite: it ends with the process, however that ends, and never has to be cleaned up.
 */
async function lockDataDirectory(directory: string): Promise<() => void> {
  const path = resolve(directory);
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    const lock = new DatabaseSync(join(path, 'lock'));
    lock.exec('begin exclusive');
    return () => lock.close();
  } catch (error) {
    const isTaken = (error as { errcode?: number }).errcode === SQLITE_BUSY;
    throw startFailure(
      isTaken
        ? `DATA_DIR: ${path} is in use by another process; stop that one, or choose another directory.`
        : `DATA_DIR: ${path} can't be written to: ${reason(error)}.`,
      error,
    );
  }
}
const SQLITE_BUSY = 5;

/** The embedded database has no checkpointer of its own: without this its log would grow until it is closed. */
function keepLogShort(database: Database): NodeJS.Timeout {
  const checkpoint = () => query(database.fork(), sql`checkpoint`).catch(() => undefined);
  return setInterval(checkpoint, 5 * 60_000).unref();
}

function reason(error: unknown): string {
  const { code, message, cause } = error as NodeJS.ErrnoException & { cause?: unknown };
  return message || code || (cause ? reason(cause) : String(error));
}
