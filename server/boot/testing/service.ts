import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import type { Reply, Request, Started } from '../../../client/testing/messages.ts';
import { emptyTables } from '../../database/emptyTables.ts';
import { IN_MEMORY, optimizeLater } from '../../database/options.ts';
import { misspeltSettings, readSettings, SETTINGS } from '../../runtime/env.ts';
import { makeLogger } from '../../security/logger.ts';
import { start } from '../start.ts';

/** Starts the service, posts its address and first superadmin, and empties the tables on request. */
export async function serveTests(port: MessagePort, given: Record<string, string>): Promise<void> {
  optimizeLater();
  checkSettings(given);
  const settings = readSettings({ ...DEFAULTS, JWT_SECRET: randomBytes(48).toString('base64url'), ...given, ...FIXED });
  const { url, database, firstAdmin } = await start(
    settings,
    await makeLogger(settings, writeToStarter),
    () => undefined,
  );
  if (!firstAdmin) throw new Error('A new database has no superadmin.');

  port.on('message', async ({ reply }: Request) => {
    const failure = await emptyTables(database.db, firstAdmin).catch((error: Error) => error.message);
    reply.postMessage({ failure: failure ?? undefined } satisfies Reply);
  });
  port.postMessage({ url, admin: firstAdmin } satisfies Started);
}

/** Unlike the environment, which has many other variables, these must all be settings. */
function checkSettings(given: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(given)) {
    const [hint = `${name} is not a setting. The README of Deckhand lists them.`] = misspeltSettings({ [name]: '' });
    if (!SETTINGS.includes(name)) throw new Error(hint);
    if (name in FIXED) throw new Error(`${name} can't be set: the address and the database of a test are fixed.`);
    if (typeof value !== 'string') throw new Error(`${name} must be text, as in the environment.`);
  }
}

const DEFAULTS = { RATE_LIMIT_PER_MINUTE: '100000000', LOG_LEVEL: 'silent', TEST_CHECKOUT: 'on' };

/** A migrated database, which only the package has, makes the start faster. */
const MIGRATED = join(import.meta.dirname, 'migrated.tar.gz');

/** Blank settings are not set. */
const FIXED = {
  HOST: '127.0.0.1',
  PORT: '0',
  DATABASE_URL: '',
  DATA_DIR: IN_MEMORY + (existsSync(MIGRATED) ? MIGRATED : ''),
  DEMO_DATA: 'off',
};

/** A worker thread's stream forwards to the standard output of the process. */
function writeToStarter(text: Buffer): number {
  process.stdout.write(text);
  return text.length;
}
