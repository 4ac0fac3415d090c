import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { connect, type Database } from './database/connect.ts';
import { DEMO_USER, fillWithDemoData } from './database/demo.ts';
import { migrate } from './database/migrate.ts';
import { type Settings, SHORTEST_SECRET } from './env.ts';
import { openServices } from './services.ts';
import { startFailure } from './startFailure.ts';

type BuildApp = typeof import('./app.ts').buildApp;

export type RunningService = {
  url: string;
  /** Who can sign in at once, on the embedded database. */
  demoUser: { email: string; password: string } | undefined;
  stop: () => Promise<void>;
};

/** Opens the database, brings it up to date, and listens. */
export async function start(settings: Settings, logger: FastifyBaseLogger): Promise<RunningService> {
  // The service is loaded while the database opens.
  const [database, { buildApp }] = await Promise.all([connect(settings), import('./app.ts')]);
  try {
    await migrate(database);
    if (database.isEmbedded) await fillWithDemoData(database);
    return await serve(settings, database, logger, buildApp);
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function serve(
  settings: Settings,
  database: Database,
  logger: FastifyBaseLogger,
  buildApp: BuildApp,
): Promise<RunningService> {
  const secret = settings.JWT_SECRET ?? (await keptSecret(settings.DATA_DIR));
  const services = await openServices(settings, database, secret, logger);
  let isStopping = false;
  const app = await buildApp({
    ...services,
    logger,
    trustProxy: settings.TRUST_PROXY,
    allowedOrigins: settings.ALLOWED_ORIGINS,
    isStopping: () => isStopping,
  });

  return {
    url: await listen(app, settings),
    demoUser: database.isEmbedded ? DEMO_USER : undefined,
    stop: async () => {
      isStopping = true;
      await drain(app);
      services.close();
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
  const kept = await readFile(path, 'utf8').catch(() => '');
  if (kept.length >= SHORTEST_SECRET) return kept;

  const made = randomBytes(48).toString('base64url');
  try {
    // Under another name first: a start that is cut off leaves no half of a secret.
    await writeFile(`${path}.new`, made, { mode: 0o600 });
    await rename(`${path}.new`, path);
    return made;
  } catch (error) {
    throw startFailure(`DATA_DIR: ${path} can't be written: ${(error as Error).message}.`, error);
  }
}
