import { chmod, mkdir, open, readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isMainThread } from 'node:worker_threads';
import { startFailure } from '../startFailure.ts';

/**
 * Makes the directory of the embedded database, keeps other users of the machine out of it, and locks it. Two processes on
 * one directory would silently lose each other's writes. The lock is one of the operating system on a file, by way of
 * SQLite: it ends with the process, however that ends, and never has to be cleaned up.
 */
export async function lockDataDirectory(directory: string): Promise<() => void> {
  const path = resolve(directory);
  // What the database writes is for its owner alone. (A process has one umask; a worker thread can't set it.)
  if (isMainThread) process.umask(0o077);
  try {
    await makeDirectory(path);
    await closeToOthers(path);
    const lockFile = join(path, 'lock');
    await open(lockFile, 'a', 0o600).then((file) => file.close());
    const lock = new DatabaseSync(lockFile);
    lock.exec('begin exclusive');
    return () => lock.close();
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

/** One by one: in places where nothing can be made, as in /proc, `recursive` never ends. */
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

/** Takes the permissions of others away, unless other things than ours are in there, as in /tmp or a home. */
async function closeToOthers(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o077) === 0) return;

  const others = (await readdir(path)).filter((name) => !OURS.test(name));
  if (others.length > 0) throw new Error(`other users can read it, and it holds other files; ${ELSEWHERE}`);
  await chmod(path, 0o700).catch((error) => {
    throw new Error(`other users can read it, and it can't be closed (${error.code}); ${ELSEWHERE}`);
  });
  console.warn(`DATA_DIR: ${path} was open to other users of this machine; it is closed now (mode 700).`);
}
const OURS = /^(lock(-journal)?|database(\.unfinished)?|jwt-secret(\.new)?|lost\+found)$/;
const ELSEWHERE = 'name a new directory inside it';
