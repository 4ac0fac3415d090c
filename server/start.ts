import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { buildApp } from './app.ts';
import { connect, type Database } from './database/connect.ts';
import { fillWithDemoData } from './database/demo.ts';
import { migrate } from './database/migrate.ts';
import type { Settings } from './env.ts';
import { makeRateLimit } from './http/rateLimit.ts';
import { makeTokens } from './security/tokens.ts';
import { startFailure } from './startFailure.ts';

export type RunningService = { url: string; isEmbedded: boolean; stop: () => Promise<void> };

/** Opens the database, brings it up to date, and listens. */
export async function start(settings: Settings, logger: FastifyBaseLogger): Promise<RunningService> {
  const database = await connect(settings);
  try {
    await migrate(database);
    if (database.isEmbedded) await fillWithDemoData(database);
    return await serve(settings, database, logger);
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function serve(settings: Settings, database: Database, logger: FastifyBaseLogger): Promise<RunningService> {
  const secret = settings.JWT_SECRET ?? (await keptSecret(settings.DATA_DIR));
  const tokens = makeTokens([secret, ...settings.JWT_PREVIOUS_SECRETS], settings.TOKEN_LIFETIME_HOURS * 60 * 60);
  const rateLimit = await makeRateLimit(settings, logger);
  let url = '';
  let isStopping = false;
  const app = await buildApp({
    database,
    tokens,
    rateLimit,
    logger,
    trustProxy: settings.TRUST_PROXY,
    publicUrl: () => settings.PUBLIC_URL ?? url,
    isStopping: () => isStopping,
  });

  url = await listen(app, settings);
  return {
    url,
    isEmbedded: database.isEmbedded,
    stop: async () => {
      isStopping = true;
      await drain(app);
      await rateLimit.close();
      await database.close();
    },
  };
}

async function listen(app: FastifyInstance, { HOST, PORT }: Settings): Promise<string> {
  try {
    return await app.listen({ host: HOST, port: PORT });
  } catch (error) {
    await app.close();
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw startFailure(
        `PORT: ${PORT} is in use on ${HOST}; choose another one, as in PORT=${PORT + 1} npm start.`,
        error,
      );
    }
    if (code === 'EACCES') throw startFailure(`PORT: ${PORT} on ${HOST} may not be used by this user.`, error);
    throw startFailure(`HOST: can't listen on ${HOST}: ${message}.`, error);
  }
}

const LONGEST_DRAIN_MILLISECONDS = 10_000;

/** Lets requests in flight end, but not for ever; connections that are merely kept alive are closed as they become idle. */
async function drain(app: FastifyInstance): Promise<void> {
  const idle = setInterval(() => app.server.closeIdleConnections(), 50);
  const limit = setTimeout(() => app.server.closeAllConnections(), LONGEST_DRAIN_MILLISECONDS);
  await app.close();
  clearInterval(idle);
  clearTimeout(limit);
}

/** The signing secret of the embedded default: made once, kept beside the data. */
async function keptSecret(directory: string): Promise<string> {
  const path = join(directory, 'jwt-secret');
  const made = randomBytes(48).toString('base64url');
  try {
    await writeFile(path, made, { flag: 'wx', mode: 0o600 });
    return made;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw startFailure(`DATA_DIR: ${path} can't be written.`, error);
    return readFile(path, 'utf8');
  }
}
