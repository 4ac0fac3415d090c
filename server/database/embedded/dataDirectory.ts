import { chmod, mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isMainThread } from 'node:worker_threads';
import { startFailure } from '../../runtime/startFailure.ts';

/**
 * Creates the directory of the embedded database, makes it private, and locks it: two processes on one directory would
 * silently lose each other's writes. The lock is an OS file lock, through SQLite: it ends with the process and needs no
 * cleanup.
 */
export async function lockDataDirectory(directory: string): Promise<() => void> {
  const path = resolve(directory);
  // Files of the database are private. (A process has one umask; a worker thread can't set it.)
  if (isMainThread) process.umask(0o077);
  try {
    await makeDirectory(path);
    await closeToOthers(path);
    const lockFile = lockFileIn(path);
    await open(lockFile, 'a', 0o600).then((file) => file.close());
    const lock = new DatabaseSync(lockFile);
    lock.exec('begin exclusive');
    return () => {
      if (lock.isOpen) lock.close();
    };
  } catch (error) {
    const { errcode, message } = error as Error & { errcode?: number };
    throw startFailure(
      errcode === SQLITE_BUSY
        ? `DATA_DIR: ${path} is in use by another process; stop that one, or choose another directory.`
        : `DATA_DIR: ${path} can't be written to: ${message}.`,
      error,
    );
  }
}
const SQLITE_BUSY = 5;

export const lockFileIn = (directory: string) => join(directory, 'lock');

const addressFileIn = (directory: string) => join(directory, 'address');

/** Keeps where the service that uses the directory listens, for commands that find it locked. */
export const keepAddress = (directory: string, url: string) => writeFile(addressFileIn(directory), url).catch(() => {});

/** Of the last service that listened. */
export const readAddress = (directory: string) => readFile(addressFileIn(directory), 'utf8').catch(() => undefined);

/** Whether another process has locked the directory. */
export const isInUse = (error: unknown) => (error as { cause?: { errcode?: number } }).cause?.errcode === SQLITE_BUSY;

/** For commands that have no `--url`: they need the directory itself. */
export const stopFirst =
  (directory: string) =>
  (error: unknown): never => {
    if (!isInUse(error)) throw error;
    const message = `DATA_DIR: ${resolve(directory)} is in use by another process. If that is the service, stop it first.`;
    throw startFailure(message, error);
  };

/** Level by level: `recursive` never returns in places such as /proc, where nothing can be created. */
async function makeDirectory(path: string): Promise<void> {
  if (await isDirectory(path)) return;
  await makeDirectory(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch(async (error) => {
    if (!(await isDirectory(path))) throw error;
  });
}

const isDirectory = (path: string) =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/** Removes the permissions of other users, unless the directory has other files, as /tmp or a home directory does. */
async function closeToOthers(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o077) === 0) return;

  const others = (await readdir(path)).filter((name) => !OURS.test(name));
  if (others.length > 0) throw new Error(`other users can read it, and it contains other files; ${ELSEWHERE}`);
  await chmod(path, 0o700).catch((error) => {
    throw new Error(`other users can read it, and its mode can't be changed (${error.code}); ${ELSEWHERE}`);
  });
  console.warn(`DATA_DIR: ${path} was readable by other users; its mode is now 700.`);
}
const OURS =
  /^(lock(-journal)?|address|database(\.unfinished)?|(jwt-secret|first-superadmin)(\.new)?|restoring|lost\+found)$/;
const ELSEWHERE = 'use a new directory inside it';
