import { environment, readSettings } from './env.ts';
import type { RunningService } from './start.ts';
import { isStartFailure } from './startFailure.ts';

let service: RunningService | undefined;
let stoppingSince: number | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);

try {
  const settings = readSettings(environment());
  // Loaded only when the settings are right: a wrong one is told at once.
  const [{ start }, { makeLogger }] = await Promise.all([import('./start.ts'), import('./log.ts')]);
  service = await start(settings, await makeLogger(settings));
  if (stoppingSince === undefined) greet(service);
  else await endService();
} catch (error) {
  console.error(isStartFailure(error) ? `Deckhand did not start. ${error.message}` : error);
  process.exit(1);
}

/** A start that is under way ends first. The same signal may come twice, from a terminal and from npm; later ones insist. */
function stop() {
  if (stoppingSince !== undefined) {
    if (performance.now() - stoppingSince > 2000) process.exit(130);
    return;
  }
  stoppingSince = performance.now();
  console.log('\nStopping…');
  if (service) void endService();
}

async function endService() {
  await service!.stop();
  process.exit(0);
}

function greet({ url, demoUser }: RunningService) {
  console.log(`
Deckhand listens on ${url}
  API page  ${url}/docs
  REST      ${url}/api
  RPC       ${url}/trpc`);
  if (demoUser) {
    console.log(`
Sign in to the demo data:
  curl -X POST ${url}/api/v1/authenticate -H 'Content-Type: application/json' -d '{"email": "${demoUser.email}", "password": "${demoUser.password}"}'

The data is kept in an embedded PostgreSQL. It is for trying out and for small teams: it survives a crash of the
process, not a power failure. Set DATABASE_URL to use a PostgreSQL server. Ctrl-C stops.`);
  }
}
