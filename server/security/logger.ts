import { pino } from 'pino';
import { KEY_PREFIX } from '../../shared/key.ts';
import type { Settings } from '../runtime/env.ts';
import { makeOutput, type Write } from '../runtime/log.ts';

/** JSON lines, or readable lines in a terminal; `base` is in each of them. */
export async function makeLogger({ LOG_LEVEL }: Pick<Settings, 'LOG_LEVEL'>, write?: Write, base?: { worker: number }) {
  const options = { level: LOG_LEVEL, base, hooks: { streamWrite: hideKeys } };
  if (!process.stdout.isTTY) return pino(options, makeOutput(write));
  const { default: pretty } = await import('pino-pretty');
  return pino(options, pretty({ sync: true, translateTime: 'SYS:HH:MM:ss', singleLine: true }));
}

/** API keys are never logged on purpose, but may be in a header or an error. */
export const hideKeys = (line: string) =>
  line.includes(KEY_PREFIX) ? line.replace(KEY_SECRETS, `${KEY_PREFIX}…`) : line;
const KEY_SECRETS = new RegExp(`${KEY_PREFIX}\\w+`, 'g');
