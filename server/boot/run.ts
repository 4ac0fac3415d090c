import { isInMemory } from '../database/embedded/location.ts';
import { openDirectory } from '../database/embedded/opening.ts';
import { misspeltSettings, readSettings, type Settings } from '../runtime/env.ts';
import { environment } from '../runtime/environment.ts';
import type { Announce } from '../runtime/log.ts';
import { isStartFailure } from '../runtime/startFailure.ts';
import type { RunningService } from './start.ts';
import type { Worker } from './workers/worker.ts';

/** After a signal. A start may wait for minutes, for example for another node's migrations. */
const LONGEST_START_MILLISECONDS = 10_000;

type Service = Pick<RunningService, 'url' | 'stop'> & Partial<Pick<RunningService, 'demoUser'>>;

let service: Service | undefined;
let announce: Announce | undefined;
let stoppingSince: number | undefined;
let worker: Worker | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
// Output errors don't matter, for example when its reader has ended.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

try {
  const given = environment();
  const settings = readSettings(given);
  const opening =
    settings.DATABASE_URL || isInMemory(settings.DATA_DIR) ? undefined : await openDirectory(settings.DATA_DIR);
  const { default: cluster } = settings.WORKERS > 1 ? await import('node:cluster') : {};
  worker = cluster?.isWorker ? (await import('./workers/worker.ts')).joinParent(() => stop()) : undefined;
  // Loaded after the settings are checked, so that their errors show at once.
  const [{ makeAnnounce }, { makeLogger }] = await Promise.all([
    import('../runtime/log.ts'),
    import('../security/logger.ts'),
  ]);
  const log = await makeLogger(settings, undefined, worker && { worker: worker.id });
  if (!worker) {
    announce = makeAnnounce(log);
    for (const hint of misspeltSettings(given)) log.warn(hint);
  }
  process.on('unhandledRejection', (reason) => log.error(reason, 'A rejected promise was not handled.'));
  process.on('uncaughtException', (error) => {
    log.fatal(error, 'An error outside any request: this process stops.');
    fail();
  });
  if (cluster?.isPrimary) {
    service = await (await import('./workers/parent.ts')).startWorkers(settings, log, fail);
  } else {
    const { start } = await import('./start.ts');
    service = await start(ownPart(settings), log, announce ?? (() => undefined), worker, opening);
  }
  worker?.reportReady(service.url);
  if (stoppingSince === undefined) announce?.(greetingOf(service, settings));
  else await stopService(service);
} catch (error) {
  // A worker that did not start has said why.
  if (!isStartFailure(error)) console.error(error);
  else if (error.message) console.error(`Deckhand did not start. ${error.message}`);
  process.exit(1);
}

/** The parent tells its workers to stop: a terminal, or a process manager, sends its signal to all of them. */
function onSignal() {
  if (worker) return;
  // A signal may come twice, from the terminal and from npm; one after 2 seconds exits at once.
  if (stoppingSince !== undefined && performance.now() - stoppingSince > 2000) process.exit(130);
  stop();
}

function fail() {
  process.exitCode = 1;
  stop(worker !== undefined);
}

function stop(isAlone = false) {
  if (stoppingSince !== undefined) return;
  stoppingSince = performance.now();
  announce?.({ text: '\nStopping…', message: 'Stopping.' });
  if (service) void stopService(service, isAlone);
  else setTimeout(() => process.exit(), LONGEST_START_MILLISECONDS).unref();
}

async function stopService({ stop }: Service, isAlone = false) {
  try {
    await stop(isAlone);
    process.exit();
  } catch (error) {
    console.error('Deckhand did not stop cleanly.', error);
    process.exit(1);
  }
}

/** The workers share the connections to the database. */
function ownPart(settings: Settings): Settings {
  return { ...settings, DATABASE_POOL_SIZE: Math.floor(settings.DATABASE_POOL_SIZE / settings.WORKERS) };
}

function greetingOf({ url, demoUser }: Service, settings: Settings) {
  const { WORKERS: workers } = settings;
  const { DATABASE_POOL_SIZE: connections } = ownPart(settings);
  const addresses = `
Deckhand listens on ${url}
  API page  ${url}/docs
  Guides    ${url}/docs/guides
  REST      ${url}/api
  RPC       ${url}/trpc
  MCP       ${url}/mcp${workers > 1 ? `\n  Workers   ${workers}, each with ${connections} connections to PostgreSQL` : ''}`;
  const mails = settings.SMTP_URL ? '' : '\nMails are shown here, such as the link for a forgotten password.\n';
  const demo = `
Sign in to the demo data:
  curl -X POST ${url}/api/v1/authenticate -H 'Content-Type: application/json' -d '{"email": "${demoUser?.email}", "password": "${demoUser?.password}"}'
${mails}
The data is stored in an embedded PostgreSQL, for evaluation and small teams: it survives a crash of the process,
but a power failure can lose the last writes. Set DATABASE_URL to use a PostgreSQL server. Ctrl-C stops.`;
  return {
    text: demoUser ? `${addresses}\n${demo}` : addresses,
    message: `Deckhand listens on ${url}`,
    fields: { url, ...(workers > 1 && { workers, connectionsPerWorker: connections }) },
  };
}
