import { writeSync } from 'node:fs';
import type { BaseLogger, Logger } from 'pino';
import { counted } from './count.ts';

/** The part of the logger that other code uses. */
export type Log = Pick<BaseLogger, 'debug' | 'info' | 'warn' | 'error'>;

/** Something that is said whatever LOG_LEVEL is, for people and as a line of the log. */
export type Announcement = { text: string; message: string; fields?: Record<string, unknown> };

/** `isOnTerminal`: a person reads it, and nobody keeps it. */
export type Announce = ((announcement: Announcement) => void) & { isOnTerminal?: boolean };

/** Text on a terminal, otherwise a line of the log, which is then JSON from the first line to the last. */
export function makeAnnounce(log: Logger): Announce {
  if (process.stdout.isTTY) {
    return Object.assign(({ text }: Announcement) => console.log(text), { isOnTerminal: true });
  }
  const always = log.child({}, { level: 'info' });
  return ({ message, fields = {} }) => always.info(fields, message);
}

/** Returns how many bytes were written. */
export type Write = (text: Buffer) => number;

const MOST_WAITING_BYTES = 1024 * 1024;
const RETRY_MILLISECONDS = 100;

/**
 * Standard output, which may be on a full disk or have no reader. Lines that can't be written are buffered up to a limit, so
 * that requests continue: pino's own destination would retry forever and block the thread.
 */
export function makeOutput(write: Write = (text) => writeSync(process.stdout.fd, text)) {
  const waiting: Buffer[] = [];
  let waitingBytes = 0;
  let lost = 0;
  let retry: NodeJS.Timeout | undefined;
  process.once('exit', writeWaiting);

  return {
    write: (line: string) => {
      if (waitingBytes > MOST_WAITING_BYTES) lost++;
      else add(line);
      if (!retry) writeWaiting();
    },
  };

  function add(line: string) {
    const text = Buffer.from(line);
    waiting.push(text);
    waitingBytes += text.length;
  }

  function writeWaiting() {
    retry = undefined;
    try {
      while (waiting.length > 0) {
        const [first] = waiting;
        const written = write(first!);
        waitingBytes -= written;
        if (written < first!.length) waiting[0] = first!.subarray(written);
        else waiting.shift();
        if (waiting.length === 0 && lost > 0) reportLost();
      }
    } catch {
      retry = setTimeout(writeWaiting, RETRY_MILLISECONDS).unref();
    }
  }

  function reportLost() {
    add(`{"level":40,"time":${Date.now()},"msg":"${counted(lost, 'line')} of this log could not be written."}\n`);
    lost = 0;
  }
}
