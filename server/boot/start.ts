import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { openServices } from '../api/services.ts';
import { closeInTime, connect, type Database } from '../database/connect.ts';
import { databaseFailure } from '../database/databaseFailure.ts';
import { keepAddress } from '../database/embedded/dataDirectory.ts';
import { writeAtStart } from '../database/embedded/fullDisk.ts';
import { embeddedDirectory } from '../database/embedded/location.ts';
import type { Opening } from '../database/embedded/opening.ts';
import { mayHaveErased, remindersOf } from '../database/level.ts';
import { migrate } from '../database/migrate.ts';
import { addFirstUsers, type FirstAdmin, warnOfUsers } from '../database/seed/firstUsers.ts';
import { checkServer } from '../database/serverCheck.ts';
import { applyFileIfDue } from '../domain/account/erasureFile.ts';
import { endSessionsOfOthers } from '../domain/account/identity.ts';
import { warnOfAge } from '../domain/account/keyWarning.ts';
import { reencryptSecrets } from '../domain/account/reencrypt.ts';
import { warnOfLostRights } from '../domain/event/webhookRight.ts';
import { interruptAllRuns } from '../domain/template/templateRun.ts';
import { PAYMENTS_NOT_SET_UP } from '../payments/provider.ts';
import type { Settings } from '../runtime/env.ts';
import { isWildcard, ownAddress } from '../runtime/host.ts';
import type { Announce } from '../runtime/log.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { hasPort } from '../security/outgoing.ts';
import { readOrCreateSecret, readStoredSecret } from '../security/storedSecret.ts';
import { startWorkWhenTold } from './work.ts';
import type { Worker } from './workers/worker.ts';

const LONGEST_DRAIN_MILLISECONDS = 10_000;
/** A hanging connection must not block the exit. */
const LONGEST_CLOSE_MILLISECONDS = 3_000;
/** Its last checkpoint writes what is in memory. */
const LONGEST_EMBEDDED_CLOSE_MILLISECONDS = 10_000;
/** After requests were cut off: connections mostly hang for the same reason, such as a silent database. */
const LONGEST_CLOSE_AFTER_CUT_MILLISECONDS = 500;

type BuildApp = typeof import('./app.ts').buildApp;

export type RunningService = {
  url: string;
  database: Database;
  /** If there is demo data. */
  demoUser: { email: string; password: string } | undefined;
  /** If this start created them. */
  firstAdmin: FirstAdmin | undefined;
  /** `isAlone`: one worker ends, and the node goes on. */
  stop: (isAlone?: boolean) => Promise<void>;
};

/** Opens the database, runs migrations, and listens. */
export async function start(
  settings: Settings,
  logger: FastifyBaseLogger,
  announce: Announce,
  worker?: Worker,
  opening?: Opening,
  /** A database that is already open; otherwise, opens its own. */
  open?: Database,
): Promise<RunningService> {
  // Modules load while the database opens.
  const [database, { buildApp }, tracing] = await Promise.all([
    open ?? connect(settings, logger, opening),
    import('./app.ts'),
    openTracing(settings, logger),
  ]);
  try {
    const buildIt = () => build(settings, database, logger, buildApp, worker);
    // While it opens. On a server, replicas count from behind the migrations.
    const early = database.isEmbedded ? await buildIt() : undefined;
    await database.opened;
    if (!worker || worker.isFirst) {
      if (!database.isEmbedded) await checkServer(database.db, logger);
      await migrate(database, {
        onMigration: database.isEmbedded ? undefined : (name) => logger.info(`Runs ${name}.`),
        onWait: (line) => logger.warn(line),
        onAdopted: (line) => logger.warn(line),
      });
      await applyFileIfDue(database.db, settings, logger);
      for (const line of await remindersOf(database.db)) logger.warn(line);
      if (!database.isEmbedded) await warnOfUsers(database, settings, logger);
    }
    if (database.isEmbedded) {
      await writeAtStart(embeddedDirectory(settings.DATA_DIR), () => interruptAllRuns(database.db));
    }
    const added = database.isEmbedded ? await addFirstUsers(database, settings, announce, logger) : undefined;
    const built = early ?? (await buildIt());
    built.services.erasures.isDue = await mayHaveErased(database.db);
    const running = await serve(settings, database, logger, built, announce, worker);
    const stop = async (isAlone?: boolean) => {
      await running.stop(isAlone);
      await tracing?.stop();
    };
    return { ...running, database, stop, demoUser: added?.demoUser, firstAdmin: added?.firstAdmin };
  } catch (error) {
    await closeInTime(database).catch(() => undefined);
    throw databaseFailure(error);
  }
}

/** Loads OpenTelemetry only if a collector is set. */
async function openTracing(settings: Settings, logger: FastifyBaseLogger) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER } = settings;
  const url = settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base && `${base.replace(/\/+$/, '')}/v1/traces`);
  if (!url || OTEL_SDK_DISABLED || OTEL_TRACES_EXPORTER === 'none') return undefined;
  const { startTracing } = await import('../runtime/traceExport.ts');
  return startTracing(settings, url, logger);
}

/** The service without its database, which may still be opening. */
async function build(
  settings: Settings,
  database: Database,
  logger: FastifyBaseLogger,
  buildApp: BuildApp,
  worker: Worker | undefined,
) {
  const secret = settings.JWT_SECRET ?? (await readOrCreateSecret(settings.DATA_DIR));
  const storedSecret = database.isEmbedded ? await readStoredSecret(settings.DATA_DIR) : undefined;
  const services = await openServices(settings, database, secret, logger, storedSecret, worker);
  const app = await buildApp({
    ...services,
    logger,
    trustProxy: settings.TRUST_PROXY,
    allowedOrigins: settings.ALLOWED_ORIGINS,
  });
  return { services, app };
}

async function serve(
  settings: Settings,
  database: Database,
  logger: FastifyBaseLogger,
  { app, services }: Awaited<ReturnType<typeof build>>,
  announce: Announce,
  worker: Worker | undefined,
): Promise<Pick<RunningService, 'url' | 'stop'>> {
  const isFirst = worker?.isFirst ?? true;
  if (isFirst && !services.payments) logger.warn(PAYMENTS_NOT_SET_UP);
  const portless = services.webhookAllowedHosts.filter((host) => !hasPort(host));
  if (isFirst && portless.length > 0)
    logger.warn(
      `WEBHOOK_ALLOWED_HOSTS: webhooks may call only port 443 of ${portless.join(', ')}. Name other ports, as in ${portless[0]}:8080.`,
    );
  const reencrypting = isFirst
    ? reencryptSecrets({ db: database.db, services, log: logger }, services.isStopping).catch((error) =>
        logger.error(error, 'Secrets were not re-encrypted: the next start retries.'),
      )
    : undefined;
  // With many users it continues while requests are served.
  await Promise.race([reencrypting, pause(2000, undefined, { ref: false })]);

  if (isFirst)
    await endSessionsOfOthers(database.db, services).catch((error) =>
      logger.warn(error, 'Sessions of removed identity providers were not ended: the next start retries.'),
    );
  const url = await listen(app, settings, worker);
  if (database.isEmbedded) await keepAddress(settings.DATA_DIR, url);
  const { API_KEYS_MAX_DAYS: keyMaxDays } = settings;
  if (isFirst && keyMaxDays)
    warnOfAge(database.db, keyMaxDays, logger).catch((error) => logger.warn(error, 'Old API keys were not counted.'));
  if (isFirst)
    warnOfLostRights(database.db, logger).catch((error) =>
      logger.warn(error, 'Webhooks without makers were not named.'),
    );
  const stopWork = startWorkWhenTold(settings, services, logger, { url, announce });
  return {
    url,
    stop: async (isAlone = false) => {
      services.beginToStop(isAlone);
      // The node is unready now: load balancers get time to notice before connections are closed.
      if (!isAlone) await pause(settings.STOP_PAUSE_SECONDS * 1000);
      const isComplete = await app.drain(LONGEST_DRAIN_MILLISECONDS, isAlone ? undefined : worker?.waitForSiblings);
      const stopped = [services.close(), reencrypting, stopWork()];
      const closed = Promise.all(stopped).then(() => database.close());
      const longest = database.isEmbedded
        ? LONGEST_EMBEDDED_CLOSE_MILLISECONDS
        : isComplete
          ? LONGEST_CLOSE_MILLISECONDS
          : LONGEST_CLOSE_AFTER_CUT_MILLISECONDS;
      await Promise.race([closed, pause(longest, undefined, { ref: false })]);
    },
  };
}

async function listen(
  app: FastifyInstance,
  { HOST, PORT, PUBLIC_URL }: Settings,
  worker: Worker | undefined,
): Promise<string> {
  try {
    // The parent prints the address, once.
    const text = worker && { listenTextResolver: () => 'Worker started.' };
    await app.listen({ host: HOST, port: PORT, ...text });
    const url = ownAddress(HOST, (app.server.address() as AddressInfo).port);
    if (isWildcard(HOST) && !PUBLIC_URL && (worker?.isFirst ?? true)) {
      app.log.warn(`PUBLIC_URL is not set: checkout URLs start with ${url}, which works only on this machine.`);
    }
    return url;
  } catch (error) {
    await app.close();
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw startFailure(
        `PORT: ${PORT} is in use on ${HOST}; choose another one, as in PORT=${PORT + 1} npm start.`,
        error,
      );
    }
    if (code === 'EACCES') throw startFailure(`PORT: this user may not listen on ${PORT} of ${HOST}.`, error);
    throw startFailure(`HOST: can't listen on ${HOST}: ${message}.`, error);
  }
}
