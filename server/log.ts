import { pino } from 'pino';
import type { Settings } from './env.ts';

/** JSON lines for machines; for a person at a terminal, something that can be read. */
export async function makeLogger({ LOG_LEVEL }: Pick<Settings, 'LOG_LEVEL'>) {
  const options = { level: LOG_LEVEL, base: undefined };
  if (!process.stdout.isTTY) return pino(options);
  const { default: pretty } = await import('pino-pretty');
  return pino(options, pretty({ sync: true, translateTime: 'SYS:HH:MM:ss', singleLine: true }));
}
