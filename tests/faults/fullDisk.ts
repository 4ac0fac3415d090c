import { execFileSync } from 'node:child_process';
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmdirSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startService, statusOf } from '../harness/process.ts';
import { findViolations } from './check.ts';
import { startLoad } from './load.ts';
import { type Outcome, stopNode, timeUntil } from './outcome.ts';
import { makeWorld, nodeSettings } from './world.ts';

const MEGABYTE = 1024 * 1024;
const DISK_MEGABYTES = 256;
/** Less than one WAL segment, so the next one does not fit. */
const LEFT_MEGABYTES = 12;
const LONGEST_ANSWER_MILLISECONDS = 5_000;

/** A tmpfs that can be filled safely; undefined if this user may not mount one. */
export function mountDisk(): { directory: string; remove: () => void } | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'deckhand-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MEGABYTES}m`, 'tmpfs', directory], { stdio: 'pipe' });
  } catch {
    rmdirSync(directory);
    return undefined;
  }
  const remove = () => {
    execFileSync('umount', ['-l', directory], { stdio: 'pipe' });
    rmdirSync(directory);
  };
  process.once('exit', remove);
  return {
    directory,
    remove: () => {
      process.off('exit', remove);
      remove();
    },
  };
}

/** Fills the disk of the embedded database: the node must keep answering and stop cleanly, and nothing acknowledged is lost. */
export async function fillDisk(disk: string, seconds: number): Promise<Outcome> {
  const DATA_DIR = join(disk, 'data');
  mkdirSync(DATA_DIR, { mode: 0o700 });
  const settings = nodeSettings({ DATA_DIR });
  const world = await makeWorld(settings);
  const service = await startService(settings);
  const load = startLoad(world, { urls: [service.url] }, { clients: 8, textLength: 50_000, endsWhenRefused: true });
  await load.acknowledged(50);

  const filler = join(disk, 'filler');
  fill(filler, disk);
  const isFull = async () => load.sent.some(({ status = 0, outcome }) => status >= 500 || outcome === 'lost');
  await timeUntil(isFull, seconds * 1000);
  await setTimeout(5000);
  const isLive = async () => (await statusOf(service.url, '/health/live')) === 200;
  const answer = Promise.race([
    timeUntil(isLive, LONGEST_ANSWER_MILLISECONDS),
    setTimeout(LONGEST_ANSWER_MILLISECONDS),
  ]);
  const isAnswering = ((await answer) ?? Number.POSITIVE_INFINITY) < LONGEST_ANSWER_MILLISECONDS;

  const { milliseconds, violations } = await stopNode(service);
  const sent = await load.stop();
  rmSync(filler);
  return {
    fault: 'a full disk, embedded',
    rounds: 1,
    sent,
    violations: [
      ...(isAnswering ? [] : ['/health/live does not answer on a full disk']),
      ...violations,
      ...(await findViolations(settings, sent)),
    ],
    times: [milliseconds],
  };
}

function fill(filler: string, disk: string) {
  const { bavail, bsize } = statfsSync(disk);
  const file = openSync(filler, 'w');
  const block = Buffer.alloc(MEGABYTE);
  for (let left = bavail * bsize; left > LEFT_MEGABYTES * MEGABYTE; left -= MEGABYTE) writeSync(file, block);
  fsyncSync(file);
  closeSync(file);
}
