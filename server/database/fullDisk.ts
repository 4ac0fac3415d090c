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

/** What is done of PGlite here: every statement, in a transaction or not, goes through this method. */
type Embedded = { execProtocolStream: (message: Uint8Array, options?: object) => Promise<unknown> };

/**
 * Refuses writes while the disk is nearly full. The embedded database does not survive a disk that is full: when it can't
 * add to its log it gives up with a PANIC, and whatever it is told next never ends.
 */
export function refuseWritesOnFullDisk(
  embedded: Embedded,
  directory: string,
  giveUp: (reason: string) => void = endProcess,
): void {
  const { execProtocolStream } = embedded;
  embedded.execProtocolStream = async function (message, options) {
    if (isWrite(message) && freeBytes(directory) < WRITE_RESERVE_BYTES) throw diskFull(directory);
    try {
      return await execProtocolStream.call(this, message, options);
    } catch (error) {
      if (isLost(error)) giveUp((error as Error).message);
      throw error;
    }
  };
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

function endProcess(reason: string): void {
  console.error(
    `Deckhand ends: the embedded database gave up (${reason}). Nothing that was answered is lost. Start again.`,
  );
  process.exit(1);
}

/** Only the messages that carry a statement, `Parse` and `Query`: values come in others. A row lock is a write too. */
function isWrite(message: Uint8Array): boolean {
  if (message[0] !== PARSE && message[0] !== QUERY) return false;
  return WRITES.test(Buffer.from(message.buffer, message.byteOffset, message.byteLength).toString('latin1'));
}
const PARSE = 'P'.charCodeAt(0);
const QUERY = 'Q'.charCodeAt(0);
const WRITES = /\b(insert|update|delete|merge|truncate|create|alter|drop)\b/i;

/** After these the database is gone, though its process is not. */
const isLost = (error: unknown) =>
  error instanceof WebAssembly.RuntimeError || /^(PANIC|FATAL)$/.test((error as { severity?: string }).severity ?? '');
