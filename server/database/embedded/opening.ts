import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { refuseDamage } from './damage.ts';
import { lockDataDirectory } from './dataDirectory.ts';
import { type Engine, openInThread } from './engine.ts';
import { refuseStartOnFullDisk } from './fullDisk.ts';
import { embeddedDirectory } from './location.ts';

/** An embedded database whose thread opens it. */
export type Opening = { directory: string; engine: Promise<Engine>; unlock: () => void };

/** Locks and checks a `DATA_DIR`, and lets a thread open its database, so that this one can load modules meanwhile. */
export async function openDirectory(dataDirectory: string): Promise<Opening> {
  const unlock = await lockDataDirectory(dataDirectory);
  try {
    const directory = embeddedDirectory(dataDirectory);
    refuseDamage(dataDirectory, directory, isFinished(directory));
    await setUnfinishedAside(directory);
    refuseStartOnFullDisk(resolve(dataDirectory), { isFirst: !existsSync(directory) });
    if (!existsSync(directory)) await (await import('./archive.ts')).unpackInto(directory);
    const engine = openInThread(directory);
    // `connect` awaits it, and reports a failure.
    engine.catch(() => undefined);
    return { directory, engine, unlock };
  } catch (error) {
    unlock();
    throw error;
  }
}

/** Marks a database directory that was opened successfully. */
export const FINISHED = 'deckhand-finished';

export const isFinished = (directory: string) => existsSync(join(directory, FINISHED));

/** Renames the directory of an interrupted first start: it can't be opened, and has no data yet. */
async function setUnfinishedAside(directory: string): Promise<void> {
  if (!existsSync(directory) || isFinished(directory)) return;
  await rm(`${directory}.unfinished`, { recursive: true, force: true });
  await rename(directory, `${directory}.unfinished`);
}
