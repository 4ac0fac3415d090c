import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, inject } from 'vitest';
import { openServices, type Services } from '../../server/api/services.ts';
import { buildApp } from '../../server/boot/app.ts';
import { connect, type Database } from '../../server/database/connect.ts';
import { IN_MEMORY } from '../../server/database/embedded/location.ts';
import { migrate } from '../../server/database/migrate.ts';
import { readSettings, type Settings } from '../../server/runtime/env.ts';
import { makeTokens } from '../../server/security/tokens.ts';
import { checkWritten } from './checkEvents.ts';
import { migratedArchive } from './process.ts';
import { createDatabase } from './server.ts';
import { givenTemplate } from './serverTemplates.ts';
import { recordRequests, statementsOf } from './statements.ts';

const prefix = inject('databaseUrlPrefix') as string | undefined;

/** The database of this worker; undefined if it is the embedded one. */
export const databaseUrl = prefix && `${prefix}${randomBytes(4).toString('hex')}`;

export const TEST_SECRET = 'a secret for tests that nobody else uses';
const METRICS_TOKEN = 'a-token-for-the-metrics-of-tests';

/** The metrics of a test service, as Prometheus reads them. */
export const scrape = async (url: string): Promise<string> =>
  (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })).text();

export const tokens = makeTokens([TEST_SECRET], 12 * 60 * 60);

const settingsWith = (more: Record<string, string | undefined>): Settings =>
  readSettings({
    ...(databaseUrl ? { DATABASE_URL: databaseUrl, TEST_CHECKOUT: 'on' } : { DATA_DIR: IN_MEMORY }),
    JWT_SECRET: TEST_SECRET,
    METRICS_TOKEN,
    RATE_LIMIT_PER_MINUTE: '1000000',
    LOG_LEVEL: 'silent',
    ...more,
  });

/** One database for all suites of a worker, opened by the first one that needs it; `checkWritten.ts` looks at it, too. */
const opened = globalThis as typeof globalThis & { testDatabase?: Promise<Database> };
export const testDatabase = () => (opened.testDatabase ??= openDatabase());

async function openDatabase(url = databaseUrl) {
  if (url) await createDatabase(url, inject('areCopies') ? await givenTemplate('migrated') : undefined);
  const database = await connect(
    settingsWith(url ? { DATABASE_URL: url } : { DATA_DIR: `${IN_MEMORY}${await migratedArchive()}` }),
    undefined,
    undefined,
    // On a busy machine, each read is slow: it would leave the lane, and be sent in more statements.
    Number.POSITIVE_INFINITY,
  );
  await migrate(database);
  return database;
}

/** A database of its own, and a service on it, for the suite that calls this: other suites leave thousands of rows. */
export function withOwnDatabase(): void {
  let before: typeof opened.testDatabase;
  beforeAll(async () => {
    before = opened.testDatabase;
    opened.testDatabase = openDatabase(databaseUrl && `${databaseUrl}${randomBytes(4).toString('hex')}`);
    await opened.testDatabase;
  });
  afterAll(async () => {
    const own = await testDatabase();
    opened.testDatabase = before;
    await checkWritten(own.db).finally(own.close);
  });
  // Below that: what is set up last is ended first.
  withOwnService();
}

/** New connections to the database of this worker, on a server. */
export const givenDatabase = (more: Record<string, string> = {}): Promise<Database> => connect(settingsWith(more));

export type TestService = { url: string; app: FastifyInstance; logged: Record<string, unknown>[] };

/** A new service on the database of this worker, for tests that need other settings or services. */
export async function givenService(
  more: Record<string, string | undefined> = {},
  others: Partial<Services> = {},
): Promise<TestService> {
  const settings = settingsWith(more);
  const logged: Record<string, unknown>[] = [];
  const write = (line: string) => {
    logged.push(JSON.parse(line));
    if (process.env.TEST_LOG) process.stderr.write(line);
  };
  const logger = pino({ level: 'info' }, { write });
  const app = await buildApp({
    ...(await openServices(settings, others.database ?? (await testDatabase()), TEST_SECRET, logger)),
    tokens,
    // Mails are queued; no test service sends them.
    sendsMail: true,
    ...others,
    logger,
    trustProxy: settings.TRUST_PROXY,
    allowedOrigins: settings.ALLOWED_ORIGINS,
  });
  recordRequests(app);
  return { url: await app.listen({ host: '127.0.0.1', port: 0 }), app, logged };
}

let shared: Promise<TestService> | undefined;

/** The service for tests that need no other settings. */
export const testService = () => (shared ??= givenService());

/** A service of its own for the suite that calls this, since the failed sign-ins of all suites of a worker count together. */
export function withOwnService(): void {
  let before: typeof shared;
  beforeAll(async () => {
    before = shared;
    shared = givenService();
    await shared;
  });
  afterAll(async () => {
    await (await testService()).app.close();
    shared = before;
  });
}

/** How many statements some work sends to the database. */
export const countStatements = async (work: () => Promise<unknown>): Promise<number> =>
  (await statementsOf(work)).length;
