import { setTimeout } from 'node:timers/promises';
import { startService, statusOf } from '../harness/process.ts';
import { findViolations } from './check.ts';
import { type Sent, startLoad } from './load.ts';
import { type Network, type Outcome, type Place, stopNode, timeUntil } from './outcome.ts';
import type { PrivateServer } from './privateServer.ts';
import { makeWorld } from './world.ts';

/** The longest waits that callers may see while the database does not respond. */
const LONGEST = {
  /** For a request that was running in the database, or got a connection before the outage was detected. */
  running: 35_000,
  begun: 5_000,
  recovery: 10_000,
};
const DETECTION_MILLISECONDS = 1_000;

/** `kill -9` of all PostgreSQL processes under load; it is restarted at once. */
export async function killDatabase(
  place: Place,
  cluster: PrivateServer,
  rounds: number,
  longestRecovery: number,
): Promise<Outcome> {
  const world = await makeWorld(place.settings);
  const service = await startService(place.settings);
  const load = startLoad(world, { urls: [service.url] }, { clients: 8, hasTemplates: true });
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await load.acknowledged(50 + ((round * 37) % 100));
    await cluster.kill();
    await cluster.start();
    const back = performance.now();
    await load.acknowledged(1);
    times.push(performance.now() - back);
  }
  const sent = await load.stop();
  const violations = [
    ...times
      .filter((time) => time > longestRecovery)
      .map((time) => `answers ${Math.round(time)} ms after PostgreSQL is back`),
    ...(await stopNode(service)).violations,
    ...(await findViolations(place.settings, sent)),
  ];
  return { fault: 'kill -9 of PostgreSQL', rounds, sent, violations, times };
}

/** All PostgreSQL processes are stopped (SIGSTOP) for a while, then continue. */
export const freezeDatabase = (place: Place, cluster: PrivateServer, duration: Duration): Promise<Outcome> =>
  interruptDatabase(`PostgreSQL frozen for ${duration.seconds} s`, place, duration, cluster.freeze, cluster.thaw);

/** The network to PostgreSQL is lost for a while: existing connections never answer again. */
export const silenceDatabase = (place: Place, network: Network, duration: Duration): Promise<Outcome> =>
  interruptDatabase(`PostgreSQL silent for ${duration.seconds} s`, place, duration, network.silence, network.restore);

type Duration = { seconds: number; secondsAfter: number };

async function interruptDatabase(
  fault: string,
  place: Place,
  { seconds, secondsAfter }: Duration,
  begin: () => void,
  end: () => void,
): Promise<Outcome> {
  const world = await makeWorld(place.direct);
  const service = await startService(place.settings);
  // More clients than pool connections.
  const load = startLoad(world, { urls: [service.url] }, { clients: 24 });
  await load.acknowledged(100);

  const begun = performance.now();
  begin();
  const [unhealthy] = await Promise.all([healthViolations(service.url), setTimeout(seconds * 1000)]);
  end();
  const back = performance.now();
  const isReady = async () => (await statusOf(service.url, '/health/ready')) === 200;
  await Promise.all([timeUntil(isReady, 2 * LONGEST.recovery), load.acknowledged(1)]);
  const recovery = performance.now() - back;
  await setTimeout(secondsAfter * 1000);

  const sent = await load.stop();
  const violations = [
    ...unhealthy,
    ...(recovery > LONGEST.recovery ? [`works again ${Math.round(recovery)} ms after the database is back`] : []),
    ...sent.flatMap((one) => slowness(one, begun, back)),
    ...(await stopNode(service)).violations,
    ...(await findViolations(place.direct, sent)),
  ];
  return { fault, rounds: 1, sent, violations, times: [recovery] };
}

function slowness(
  { operation, surface, sentAt, milliseconds, status, code }: Sent,
  begun: number,
  back: number,
): string[] {
  const longest = sentAt < begun + DETECTION_MILLISECONDS ? LONGEST.running : LONGEST.begun;
  const isLate = milliseconds > longest;
  const isFault = sentAt > back + LONGEST.recovery && status !== 422 && !(status! < 300);
  if (!isLate && !isFault) return [];
  const when =
    sentAt > back
      ? `${Math.round(sentAt - back)} ms after the outage`
      : `${Math.round(sentAt - begun)} ms into the outage`;
  return [`${surface} ${operation} sent ${when}: ${status ?? code} after ${Math.round(milliseconds)} ms`];
}

/** Without its database a node is live but not ready, and says so quickly. */
async function healthViolations(url: string): Promise<string[]> {
  await setTimeout(DETECTION_MILLISECONDS);
  const begun = performance.now();
  const statuses = await Promise.all(['/health/live', '/health/ready'].map((path) => statusOf(url, path)));
  const milliseconds = performance.now() - begun;
  return [
    ...(String(statuses) === '200,503'
      ? []
      : [`/health/live and /health/ready answer ${statuses} without the database`]),
    ...(milliseconds > LONGEST.begun ? [`/health/ready takes ${Math.round(milliseconds)} ms`] : []),
  ];
}

/** SIGTERM while the network to PostgreSQL is lost: the process must still end. */
export async function stopInSilence(place: Place, network: Network, secondsBefore: number): Promise<Outcome> {
  const world = await makeWorld(place.direct);
  const service = await startService(place.settings);
  const load = startLoad(world, { urls: [service.url] }, { clients: 24, endsWhenRefused: true });
  await load.acknowledged(100);

  const begun = performance.now();
  network.silence();
  await setTimeout(secondsBefore * 1000);
  const asked = performance.now();
  const { milliseconds, violations } = await stopNode(service);
  const sent = await load.stop();

  const slow = sent.filter(({ sentAt }) => sentAt < asked).flatMap((one) => slowness(one, begun, asked));
  violations.push(...slow, ...(await findViolations(place.direct, sent)));
  return { fault: 'SIGTERM while PostgreSQL is silent', rounds: 1, sent, violations, times: [milliseconds] };
}
