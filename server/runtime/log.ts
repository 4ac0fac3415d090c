import { writeSync } from 'node:fs';
import type { BaseLogger, Logger } from 'pino';
import { counted } from './count.ts';

/** The part of the logger that other code uses. */
export type Log = Pick<BaseLogger, 'debug' | 'info' | 'warn' | 'error'>;

/** Shown whatever LOG_LEVEL is: text for a terminal, message and fields for the log. */
export type Announcement = { text: string; message: string; fields?: Record<string, unknown> };

/** On a terminal, secrets may be shown: nobody stores its output. */
export type Announce = ((announcement: Announcement) => void) & { isOnTerminal?: boolean };

export function makeAnnounce(log: Logger): Announce {
  if (process.stdout.isTTY) {
    return Object.assign(({ text }: Announcement) => console.log(text), { isOnTerminal: true });
  }
  const alwaysLog = log.child({}, { level: 'info' });
  return ({ message, fields = {} }) => alwaysLog.info(fields, message);
}

/** Returns how many bytes were written. */
export type Write = (text: Buffer) => number;

const MOST_WAITING_BYTES = 1024 * 1024;
const RETRY_MILLISECONDS = 100;

/**
 * Writes to standard output, whose disk may be full or whose reader may hang. Buffers lines up to a limit, so that requests go
 * on: pino's own destination would retry forever and block the thread.
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
      for (let line = waiting[0]; line; line = waiting[0]) {
        const written = write(line);
        waitingBytes -= written;
        if (written < line.length) waiting[0] = line.subarray(written);
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
