import { setTimeout } from 'node:timers/promises';
import { givenSharedDatabase } from '../faults/failover.ts';
import { givenDatabase, type Outcome, type Place, withRemoval } from '../faults/outcome.ts';
import { givenCluster, givenReplica } from '../faults/privateServer.ts';
import { type RunOptions, runHistory } from './run.ts';

export type Size = Pick<RunOptions, 'seconds' | 'calls' | 'callers' | 'seed' | 'program' | 'longestDeliverySeconds'>;

/** One node after the other is killed and started again. On the embedded database, there is only one. */
export const historyOfKills = (place: Place, size: Size): Promise<Outcome> => {
  const nodes = place.settings.DATABASE_URL ? 2 : 1;
  const disturb: RunOptions['disturb'] = async ({ kill, done }, round) => {
    await done(150);
    await kill(round % nodes);
  };
  return runHistory(`histories with kills, ${place.name}`, place.settings, { ...size, nodes, disturb });
};

/** The primary is killed, and its synchronous standby is promoted. */
export async function historyOfFailover(size: Size): Promise<Outcome> {
  return withRemoval((await givenCluster())!, async (primary) =>
    withRemoval(await givenReplica(primary, { synchronous: true }), async (standby) => {
      const settings = await givenSharedDatabase([primary, standby]);
      const disturb: RunOptions['disturb'] = async (_, round) => {
        await setTimeout(size.seconds * 500);
        if (round > 0) return;
        await primary.kill();
        await setTimeout(300);
        await standby.promote();
      };
      return runHistory('histories with a fail-over', settings, { ...size, disturb });
    }),
  );
}

/** Reads go to a replica that is behind again and again. */
export async function historyOfReplicas(size: Size): Promise<Outcome> {
  return withRemoval((await givenCluster())!, async (primary) =>
    withRemoval(await givenReplica(primary), async (replica) => {
      const { settings } = await givenDatabase(primary.url);
      const { pathname } = new URL(settings.DATABASE_URL!);
      const url = Object.assign(new URL(replica.url), { pathname }).href;
      const disturb: RunOptions['disturb'] = async () => {
        await replica.pause();
        await setTimeout(400);
        await replica.resume();
        await setTimeout(200);
      };
      const all = { ...settings, DATABASE_REPLICA_URLS: url };
      return runHistory('histories with a replica', all, { ...size, disturb, hasReplicas: true });
    }),
  );
}
