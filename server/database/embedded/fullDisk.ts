import { statfsSync } from 'node:fs';
import { startFailure } from '../../runtime/startFailure.ts';

/** Free space required for writes: a WAL segment has 16 MiB, and a checkpoint needs space too. */
const MEBIBYTE = 1024 * 1024;
const WRITE_RESERVE_BYTES = 64 * MEBIBYTE;
/** Free space required to start: crash recovery creates a WAL segment, and the first start also the tables. */
const START_RESERVE_BYTES = 32 * MEBIBYTE;
const FIRST_START_RESERVE_BYTES = 128 * MEBIBYTE;

/** Refuses a start that would fail for lack of space. */
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
 * Refuses a write while the disk is nearly full: the embedded database crashes with a PANIC when it can't write its WAL.
 */
export function refuseWriteOnFullDisk(directory: string): void {
  if (freeBytes(directory) < WRITE_RESERVE_BYTES && !withoutReserve.has(directory)) throw diskFull(directory);
}

/** Directories whose database is writing what a start has to write. */
const withoutReserve = new Set<string>();

/** For a few rows that a start must write: it has checked the space for them already, and may have less than other writes need. */
export async function writeAtStart(directory: string, work: () => Promise<unknown>): Promise<void> {
  withoutReserve.add(directory);
  await work().finally(() => withoutReserve.delete(directory));
}

/** Infinite if unknown: some file systems report nothing. */
function freeBytes(directory: string): number {
  const { bavail, bsize, blocks } = statfsSync(directory);
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/** With PostgreSQL's error code for a full disk. */
const diskFull = (directory: string) =>
  Object.assign(startFailure(`DATA_DIR: the disk of ${directory} is nearly full: writes are refused.`), {
    code: '53100',
  });
