import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

/** The directory of the test run, which removes it; a standalone program creates its own. */
export function workplace(): string {
  const { TEST_WORKPLACE } = process.env;
  if (TEST_WORKPLACE) return TEST_WORKPLACE;
  if (!own) {
    const made = mkdtempSync(join(tmpdir(), 'deckhand-'));
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
    own = made;
  }
  return own;
}

let own: string | undefined;

/** Makes a file or directory by the first worker that needs it; the others wait for it, and fail like that one. */
export async function madeOnce(name: string, make: (path: string) => Promise<void>): Promise<string> {
  const made = join(workplace(), name);
  const [lock, failure] = [`${made}.lock`, `${made}.failed`];
  if (await takeLock(lock)) {
    try {
      await make(`${made}.new`);
      await rename(`${made}.new`, made);
    } catch (error) {
      await writeWhole(failure, String((error as Error).stack ?? error));
      throw error;
    }
  }
  while (!existsSync(made)) {
    if (existsSync(failure))
      throw new Error(`Another worker could not make ${name}: ${await readFile(failure, 'utf8')}`);
    const pid = Number(await readFile(lock, 'utf8'));
    // Asked again, since a worker may end right after it is done.
    if (!isRunning(pid) && !existsSync(made)) throw new Error(`Process ${pid} ended while it made ${name}.`);
    await setTimeout(50);
  }
  return made;
}

/** The lock is a file with the id of the process that has it. */
async function takeLock(lock: string): Promise<boolean> {
  const own = `${lock}.${randomUUID()}`;
  await writeFile(own, String(process.pid));
  try {
    await link(own, lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(own);
  }
}

/** Others see the whole file, or none. */
async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
