import { setTimeout } from 'node:timers/promises';
import { startService } from '../harness/process.ts';
import { findViolations } from './check.ts';
import { type Sent, startLoad } from './load.ts';
import { type Outcome, type Place, stopNode } from './outcome.ts';
import type { PrivateServer } from './privateServer.ts';
import { makeWorld } from './world.ts';

/** Redis is killed and restarted: requests still work. */
export const killRedis = (place: Place, redis: PrivateServer, seconds: number): Promise<Outcome> =>
  interruptRedis(`kill -9 of Redis, ${place.name}`, place, redis, seconds, redis.kill, redis.start);

/** Redis is stopped (SIGSTOP) for a while: after the first timeouts no request waits for it. */
export const freezeRedis = (place: Place, redis: PrivateServer, seconds: number): Promise<Outcome> =>
  interruptRedis(`Redis frozen for ${seconds} s, ${place.name}`, place, redis, seconds, redis.freeze, redis.thaw);

const DETECTION_MILLISECONDS = 4_000;
/** The limit for the median request after that: half a Redis timeout. */
const LONGEST_MILLISECONDS = 500;

async function interruptRedis(
  fault: string,
  place: Place,
  redis: PrivateServer,
  seconds: number,
  begin: () => unknown,
  end: () => unknown,
): Promise<Outcome> {
  const world = await makeWorld(place.settings);
  const service = await startService({ ...place.settings, REDIS_URL: redis.url });
  const load = startLoad(world, { urls: [service.url] }, { clients: 4 });
  await load.acknowledged(50);

  const begun = performance.now();
  await begin();
  await setTimeout(seconds * 1000);
  await end();
  const back = performance.now();
  await load.acknowledged(50);

  const sent = await load.stop();
  const isFailed = ({ outcome, status }: Sent) => outcome !== 'acknowledged' && status !== 422;
  const times = sent
    .filter(({ sentAt }) => sentAt > begun + DETECTION_MILLISECONDS && sentAt < back)
    .map(({ milliseconds }) => milliseconds)
    .sort((one, other) => one - other);
  const middle = times[times.length >> 1] ?? 0;
  return {
    fault,
    rounds: 1,
    sent,
    violations: [
      ...sent.filter(isFailed).map(({ operation, status, code }) => `${operation} without Redis: ${status ?? code}`),
      ...(middle > LONGEST_MILLISECONDS ? [`requests take ${Math.round(middle)} ms without Redis`] : []),
      ...(await stopNode(service)).violations,
      ...(await findViolations(place.settings, sent)),
    ],
    times: [],
  };
}
