import { statfsSync } from 'node:fs';
import { startFailure } from '../startFailure.ts';

/** What has to be free for writes: a log segment of the database has 16 MiB, and a checkpoint needs room too. */
const MEBIBYTE = 1024 * 1024;
const WRITE_RESERVE_BYTES = 64 * MEBIBYTE;
/** To start: with room to recover after a crash; the first time, with room for the tables too. */
const START_RESERVE_BYTES = 32 * MEBIBYTE;
const FIRST_START_RESERVE_BYTES = 128 * MEBIBYTE;

/** Refuses a start that could only fail half way. */
export function refuseStartOnFullDisk(directory: string, { isFirst }: { isFirst: boolean }): void {
  const wanted = isFirst ? FIRST_START_RESERVE_BYTES : START_RESERVE_BYTES;
  const free = freeBytes(directory);
  if (free >= wanted) return;
  const [has, needs] = [free, wanted].map((bytes) => Math.floor(bytes / MEBIBYTE));
  throw startFailure(
    `DATA_DIR: the disk of ${directory} has ${has} MiB left, and ${needs} are needed; free some space.`,
  );
}

/**
 * Refuses a write while the disk is nearly full. The embedded database does not survive a disk that is full: when it can't
 * add to its log it gives up with a PANIC.
 */
export function refuseWriteOnFullDisk(directory: string): void {
  if (freeBytes(directory) < WRITE_RESERVE_BYTES) throw diskFull(directory);
}

/** Unknown counts as enough: some file systems tell nothing. */
function freeBytes(directory: string): number {
  const { bavail, bsize, blocks } = statfsSync(directory);
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/** With the code that PostgreSQL itself has for it. */
const diskFull = (directory: string) =>
  Object.assign(startFailure(`DATA_DIR: the disk of ${directory} is nearly full: nothing is written any more.`), {
    code: '53100',
  });
