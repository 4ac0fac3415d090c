import { randomBytes } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import type { MessagePort } from 'node:worker_threads';
import type { FixedSetting, Reply, Request, Started } from '../../../client/testing/messages.ts';
import { IN_MEMORY } from '../../database/embedded/location.ts';
import { emptyTables } from '../../database/emptyTables.ts';
import { makePrepared } from '../../database/snapshot.ts';
import { misspeltSettings, readSettings, SETTINGS } from '../../runtime/env.ts';
import { makeLogger } from '../../security/logger.ts';
import { start } from '../start.ts';

/** Starts the service, posts its address and first superadmin, and empties the tables on request. */
export async function serveTests(port: MessagePort, given: Record<string, string>): Promise<void> {
  const settings = await readTestSettings({ JWT_SECRET: randomBytes(48).toString('base64url'), ...given });
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
  // Now, since tests end the thread without a shutdown.
  flushCompileCache();
}

/** The settings of a service on loopback with a database in memory. */
export async function readTestSettings(given: Record<string, string>, fixed: Partial<typeof FIXED> = {}) {
  checkSettings(given);
  const DATA_DIR = IN_MEMORY + ((await makePrepared()) ?? '');
  return readSettings({ ...DEFAULTS, ...given, ...FIXED, DATA_DIR, ...fixed });
}

/** Unlike the environment, which has many other variables, these must all be settings. */
function checkSettings(given: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(given)) {
    const [hint = `${name} is not a setting. docs/settings.md of Deckhand lists them.`] = misspeltSettings({
      [name]: '',
    });
    if (!SETTINGS.includes(name)) throw new Error(hint);
    if (name in FIXED) throw new Error(`${name} can't be set: the address and the database of a test are fixed.`);
    if (typeof value !== 'string') throw new Error(`${name} must be text, as in the environment.`);
  }
}

const DEFAULTS = { RATE_LIMIT_PER_MINUTE: '100000000', LOG_LEVEL: 'silent', TEST_CHECKOUT: 'on' };

/** Blank settings are not set. */
const FIXED = {
  HOST: '127.0.0.1',
  PORT: '0',
  DATABASE_URL: '',
  DATA_DIR: '',
  DEMO_DATA: 'off',
} satisfies Record<FixedSetting, string>;

/** A worker thread's stream forwards to the standard output of the process. */
export function writeToStarter(text: Buffer): number {
  process.stdout.write(text);
  return text.length;
}
