import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { sql } from 'kysely';
import { packTar, unpackTar } from 'modern-tar/fs';
import { readSettings } from '../../runtime/env.ts';
import { isStartFailure, startFailure } from '../../runtime/startFailure.ts';
import { STORED_SECRET } from '../../security/storedSecret.ts';
import { connect, type Database, refuseWithoutDatabase } from '../connect.ts';
import { lockDataDirectory, lockFileIn } from '../embedded/dataDirectory.ts';
import { embeddedDirectory } from '../embedded/location.ts';
import { beginRestored, INCARNATIONS, markAsRestored } from '../incarnation.ts';
import { migrate } from '../migrate.ts';
import { query } from '../query.ts';

/**
 * Writes the embedded database and its generated secret to a new file, a compressed tar archive; returns its size. Under the lock
 * of the directory, so that nothing changes meanwhile. The file gets its name when it is complete and on the disk.
 */
export async function writeBackup(dataDirectory: string, path: string): Promise<number> {
  refuseWithoutDatabase(dataDirectory);
  const unlock = await lockDataDirectory(dataDirectory);
  const partial = `${path}.partial`;
  try {
    if (existsSync(path)) throw new Error('it exists already');
    await rm(partial, { force: true });
    await pipeline(
      archiveOf(resolve(dataDirectory)),
      createGzip({ level: 1 }),
      createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true }),
    );
    const { size } = await stat(partial);
    await rename(partial, path);
    await syncDirectory(dirname(path));
    return size;
  } catch (error) {
    await rm(partial, { force: true });
    throw startFailure(`--file: ${path} can't be written: ${(error as Error).message}.`, error);
  } finally {
    unlock();
  }
}

/** Where a restore unpacks; a later one removes what an interrupted one left. */
const RESTORING = 'restoring';

/**
 * Restores a backup into a directory without a database. It is unpacked and opened in a directory of its own first, where `settle`
 * may change it.
 */
export async function restoreBackup(
  dataDirectory: string,
  path: string,
  settle: (database: Database) => Promise<void>,
): Promise<void> {
  const file = await open(path).catch((error) => {
    throw startFailure(`--file: ${path} can't be read: ${error.message}.`, error);
  });
  await file.close();
  /** To remove, unless it is restored. */
  const made = missingDirectories(dataDirectory);
  const unlock = await lockDataDirectory(dataDirectory);
  const unpacked = resolve(dataDirectory, RESTORING);
  try {
    if (existsSync(embeddedDirectory(dataDirectory))) {
      throw startFailure(`DATA_DIR: ${resolve(dataDirectory)} already has a database. Choose another directory.`);
    }
    await rm(unpacked, { recursive: true, force: true });
    await mkdir(unpacked);
    await unpack(path, unpacked);
    await beginAnew(unpacked, path, settle);
    await moveInto(resolve(dataDirectory), unpacked);
    made.length = 0;
  } finally {
    await rm(unpacked, { recursive: true, force: true });
    if (made.length > 0) await rm(lockFileIn(dataDirectory));
    unlock();
    for (const directory of made) await rmdir(directory).catch(() => undefined);
  }
}

/** The directories of a path that do not exist yet, the innermost first. */
function missingDirectories(path: string): string[] {
  const at = resolve(path);
  return existsSync(at) ? [] : [at, ...missingDirectories(dirname(at))];
}

const DATABASE = basename(embeddedDirectory(''));

/** All files and directories, even empty ones: PostgreSQL does not start without them. Nothing else about this machine. */
function archiveOf(dataDirectory: string) {
  const place = (name: string) => ({
    ...{ source: join(dataDirectory, name), target: name },
    ...{ uid: 0, gid: 0, mtime: new Date(0) },
  });
  const hasSecret = existsSync(join(dataDirectory, STORED_SECRET));
  const secret = hasSecret ? [{ type: 'file' as const, ...place(STORED_SECRET) }] : [];
  return packTar([{ type: 'directory', ...place(DATABASE) }, ...secret], {
    filter: (_path, found) => found.isFile() || found.isDirectory(),
    map: (header) => ({ ...header, mode: header.type === 'directory' ? 0o700 : 0o600 }),
  });
}

/** Without fsync, as the embedded database itself writes: after a power failure, the backup is still there. */
async function unpack(path: string, directory: string): Promise<void> {
  try {
    const unpacking = unpackTar(directory, {
      ...{ strict: true, dmode: 0o700, fmode: 0o600 },
      filter: ({ name, type }) => {
        if (!isOurs(name) || !['file', 'directory'].includes(type!)) throw new Error('it has other entries');
        return true;
      },
      // Without the time of 1970.
      map: ({ mtime, ...header }) => header,
    });
    await pipeline(createReadStream(path), createGunzip(), unpacking);
  } catch (error) {
    throw startFailure(`--file: ${path} can't be restored: ${reasonOf(error as Error)}. Nothing was restored.`, error);
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'Z_BUF_ERROR' || message === 'Tar archive is truncated.') return 'it is incomplete';
  if (code === 'Z_DATA_ERROR') return 'it is damaged, or not a backup';
  // What the disk refuses has a code, what the archive has wrong has none.
  return code ? message : 'it is not a backup';
}

/** Only names that stay inside the directory. */
function isOurs(name: string): boolean {
  const [first, ...parts] = name.replace(/\/$/, '').split('/');
  const isPlain = (part: string) => /^[\w.-]+$/.test(part) && part !== '.' && part !== '..';
  return name === STORED_SECRET || (name !== DATABASE && first === DATABASE && parts.every(isPlain));
}

/** Opens the database, so that an unusable backup fails here. Whatever the embedded database asks, its server is always the same. */
async function beginAnew(unpacked: string, path: string, settle: (database: Database) => Promise<void>) {
  try {
    refuseWithoutDatabase(unpacked);
    const database = await connect(readSettings({ DATA_DIR: unpacked }));
    try {
      await adoptBackup(database);
      await settle(database);
    } finally {
      await database.close();
    }
  } catch (error) {
    const reason = isStartFailure(error) ? error.message : `${(error as Error).message}.`;
    throw startFailure(`--file: ${path} has no usable database: ${reason} Nothing was restored.`, error);
  }
}

/** A backup of an earlier version gets the tables of this one. */
async function adoptBackup(database: Database): Promise<void> {
  const { db } = database;
  await query(db, sql`select from users limit 1`);
  const isEarlier = (await query(db, sql`select where to_regclass(${INCARNATIONS}) is null`)).length > 0;
  if (isEarlier) await markAsRestored(db);
  await migrate(database);
  if (!isEarlier) await beginRestored(db);
}

/** The database last: with it, the restore is complete. */
async function moveInto(dataDirectory: string, unpacked: string): Promise<void> {
  const [secret, kept] = await Promise.all([unpacked, dataDirectory].map(secretIn));
  if (kept !== undefined && kept !== secret) {
    throw startFailure(
      `DATA_DIR: ${join(dataDirectory, STORED_SECRET)} exists, and the backup has another one. Move it away.`,
    );
  }
  if (secret !== undefined) await rename(join(unpacked, STORED_SECRET), join(dataDirectory, STORED_SECRET));
  await rename(join(unpacked, DATABASE), join(dataDirectory, DATABASE));
}

const secretIn = (directory: string) => readFile(join(directory, STORED_SECRET), 'utf8').catch(() => undefined);

/** Makes a rename survive a power failure. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  await directory.sync().finally(() => directory.close());
}
