import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { startFailure } from '../../runtime/startFailure.ts';

/** The version of PostgreSQL that PGlite is built from. */
export const ENGINE_VERSION = '18';

/**
 * Refuses a directory that can't be that of a complete database, before PGlite opens it: without its version, PGlite would create
 * an empty database over the files that are left.
 */
export function refuseDamage(dataDirectory: string, directory: string, isFinished: boolean): void {
  if (!existsSync(directory)) return;
  // A service has listened with this directory, so that its database was complete.
  if (!isFinished && !existsSync(join(dataDirectory, 'address'))) return;
  const version = isFinished ? readVersion(dataDirectory, directory) : undefined;
  if (version === undefined) throw damaged(dataDirectory, 'files are missing');
  if (version === ENGINE_VERSION) return;
  if (!/^\d+$/.test(version)) throw damaged(dataDirectory, 'PG_VERSION is not a version');
  throw startFailure(
    `DATA_DIR: the database in ${resolve(dataDirectory)} is of PostgreSQL ${version}, and this Deckhand reads ${ENGINE_VERSION}. \
Use the Deckhand that wrote it, or restore a backup.`,
  );
}

/** A start that fails for damaged files, with what to do. */
export const damaged = (dataDirectory: string, why: string, cause?: unknown) =>
  startFailure(
    `DATA_DIR: the database in ${resolve(dataDirectory)} is damaged, or was copied only in part: ${why}. Copy it again while the \
service is stopped, or restore a backup into a new directory: DATA_DIR=NEW npx deckhand database restore --file BACKUP --without-erasures (or --erasures FILE)`,
    cause,
  );

function readVersion(dataDirectory: string, directory: string): string | undefined {
  try {
    return readFileSync(join(directory, 'PG_VERSION'), 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw startFailure(
      `DATA_DIR: ${resolve(dataDirectory)} can't be read: ${code}. Give this user access to all its files.`,
      error,
    );
  }
}
