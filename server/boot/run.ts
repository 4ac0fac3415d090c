import { environment, misspeltSettings, readSettings } from '../runtime/env.ts';
import type { Announce } from '../runtime/log.ts';
import { isStartFailure } from '../runtime/startFailure.ts';
import type { RunningService } from './start.ts';

/** After a signal. A start may wait for minutes, for example for another node's migrations. */
const LONGEST_START_MILLISECONDS = 10_000;

let service: RunningService | undefined;
let announce: Announce | undefined;
let stoppingSince: number | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
// Output errors don't matter, for example when its reader has ended.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

try {
  const given = environment();
  const settings = readSettings(given);
  // Loaded after the settings are checked, so that their errors show at once.
  const [{ start }, { makeAnnounce }, { makeLogger }] = await Promise.all([
    import('./start.ts'),
    import('../runtime/log.ts'),
    import('../security/logger.ts'),
  ]);
  const log = await makeLogger(settings);
  announce = makeAnnounce(log);
  for (const hint of misspeltSettings(given)) log.warn(hint);
  process.on('unhandledRejection', (reason) => log.error(reason, 'A rejected promise was not handled.'));
  process.on('uncaughtException', (error) => {
    log.fatal(error, 'An error outside any request: this process stops.');
    process.exitCode = 1;
    stop();
  });
  service = await start(settings, log, announce);
  if (stoppingSince === undefined) announce(greetingOf(service));
  else await stopService(service);
} catch (error) {
  console.error(isStartFailure(error) ? `Deckhand did not start. ${error.message}` : error);
  process.exit(1);
}

/** A signal may come twice, from the terminal and from npm; one after 2 seconds exits at once. */
function stop() {
  if (stoppingSince !== undefined) {
    if (performance.now() - stoppingSince > 2000) process.exit(130);
    return;
  }
  stoppingSince = performance.now();
  announce?.({ text: '\nStopping…', message: 'Stopping.' });
  if (service) void stopService(service);
  else setTimeout(() => process.exit(), LONGEST_START_MILLISECONDS).unref();
}

async function stopService({ stop }: RunningService) {
  try {
    await stop();
    process.exit();
  } catch (error) {
    console.error('Deckhand did not stop cleanly.', error);
    process.exit(1);
  }
}

function greetingOf({ url, demoUser }: RunningService) {
  const addresses = `
Deckhand listens on ${url}
  API page  ${url}/docs
  Guides    ${url}/docs/guides
  REST      ${url}/api
  RPC       ${url}/trpc`;
  const demo = `
Sign in to the demo data:
  curl -X POST ${url}/api/v1/authenticate -H 'Content-Type: application/json' -d '{"email": "${demoUser?.email}", "password": "${demoUser?.password}"}'

The data is stored in an embedded PostgreSQL, for evaluation and small teams: it survives a crash of the process,
but a power failure can lose the last writes. Set DATABASE_URL to use a PostgreSQL server. Ctrl-C stops.`;
  return {
    text: demoUser ? `${addresses}\n${demo}` : addresses,
    message: `Deckhand listens on ${url}`,
    fields: { url },
  };
}
