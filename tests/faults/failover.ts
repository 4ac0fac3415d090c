import { setTimeout } from 'node:timers/promises';
import { startService, statusOf } from '../harness/process.ts';
import { findViolations } from './check.ts';
import { startLoad } from './load.ts';
import { givenDatabase, type Outcome, stopNode, timeUntil } from './outcome.ts';
import { givenCluster, givenReplica, type PrivateServer } from './privateServer.ts';
import { makeWorld, nodeSettings } from './world.ts';

const LONGEST_MILLISECONDS = 5_000;

/**
 * `kill -9` of the primary under load; its synchronous standby is promoted. The old primary comes back as the standby of the new
 * one, and next time it is promoted itself. The service runs through all of it.
 */
export async function failOver(rounds: number, millisecondsWithoutPrimary: number): Promise<Outcome> {
  let primary: PrivateServer = (await givenCluster())!;
  let standby = await givenReplica(primary, { synchronous: true });
  try {
    const settings = await givenSharedDatabase([primary, standby]);
    const world = await makeWorld(settings);
    const service = await startService(settings);
    const isReady = async () => (await statusOf(service.url, '/health/ready')) === 200;
    const load = startLoad(world, { urls: [service.url] }, { clients: 8, hasTemplates: true, isRetrying: true });
    const times: number[] = [];
    const violations: string[] = [];
    for (let round = 0; round < rounds; round++) {
      if (round > 0) {
        const port = portOf(primary);
        await primary.remove();
        primary = standby;
        standby = await givenReplica(primary, { synchronous: true, port });
      }
      await load.acknowledged(50 + ((round * 37) % 100));
      await primary.kill();
      await setTimeout(millisecondsWithoutPrimary);
      if (await isReady()) violations.push('/health/ready is 200 without a primary');
      const promoted = performance.now();
      await standby.promote();
      await load.acknowledged(1);
      times.push(performance.now() - promoted);
      if ((await timeUntil(isReady, LONGEST_MILLISECONDS)) >= LONGEST_MILLISECONDS)
        violations.push('/health/ready is not 200 after the promotion');
    }
    await load.acknowledged(50);
    const sent = await load.stop();
    violations.push(
      ...times
        .filter((time) => time > LONGEST_MILLISECONDS)
        .map((time) => `the first write is acknowledged ${Math.round(time)} ms after the promotion`),
      ...(await stopNode(service)).violations,
      ...(await findViolations(settings, sent)),
    );
    return { fault: 'fail-over to a synchronous standby', rounds, sent, violations, times };
  } finally {
    await Promise.all([primary.remove(), standby.remove()]);
  }
}

/** Settings with both servers, the one that is read-only first. */
async function givenSharedDatabase([primary, standby]: [PrivateServer, PrivateServer]) {
  const { settings } = await givenDatabase(primary.url);
  const { pathname } = new URL(settings.DATABASE_URL!);
  const hosts = [standby, primary].map((server) => `127.0.0.1:${portOf(server)}`);
  return nodeSettings({ DATABASE_URL: `postgresql://postgres@${hosts}${pathname}?target_session_attrs=read-write` });
}

const portOf = ({ url }: PrivateServer) => Number(new URL(url).port);
