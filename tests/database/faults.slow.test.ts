import { afterAll, describe, expect, it } from 'vitest';
import { freezeDatabase, killDatabase, stopInSilence } from '../faults/databaseFaults.ts';
import { killMirror } from '../faults/mirrorFaults.ts';
import { workTogether } from '../faults/nodeFaults.ts';
import {
  givenDatabase,
  givenEmbedded,
  type Outcome,
  overNetwork,
  type Place,
  withRemoval,
  withWorkers,
} from '../faults/outcome.ts';
import { givenCluster, givenRedis, hasServerPrograms, type PrivateServer } from '../faults/privateServer.ts';
import { freezeRedis } from '../faults/redisFaults.ts';
import { killService, stopService } from '../faults/serviceFaults.ts';
import { removeProcesses } from '../harness/process.ts';
import { findTestServer } from '../harness/server.ts';

/**
 * The short form of `npm run test:faults`, which the night runs. That also stops a service without workers under load: each
 * worker here stops in the same way.
 */

const hasCluster = hasServerPrograms();
if (!hasCluster) console.log('SKIPPED: faults of PostgreSQL. No PostgreSQL server is installed.');
const redis = await givenRedis();
if (!redis) console.log('SKIPPED: faults of Redis. No redis-server is installed.');
const { url } = await findTestServer();
const cluster = !url && hasCluster ? await givenCluster() : undefined;
const serverUrl = url ?? cluster?.url;

afterAll(async () => {
  await removeProcesses();
  await Promise.all([cluster?.remove(), redis?.remove()]);
});

type Work = (place: Place) => Promise<Outcome>;
const onEmbedded = async (work: Work) => withRemoval(await givenEmbedded(), work);
const onServer = async (work: Work) => withRemoval(await givenDatabase(serverUrl!), work);
const onEmpty = async (work: Work) => withRemoval(await givenDatabase(serverUrl!, { isEmpty: true }), work);
/** On a private server, so that its faults do not affect other tests. */
const onCluster = async (work: (place: Place, cluster: PrivateServer) => Promise<Outcome>) =>
  withRemoval((await givenCluster())!, async (cluster) =>
    withRemoval(await givenDatabase(cluster.url), (place) => work(place, cluster)),
  );

const violations = async (outcome: Promise<Outcome>) => (await outcome).violations;

describe('acknowledged writes are stored exactly once', { timeout: 180_000 }, () => {
  it('after kill -9 of the service, on the embedded database', async () => {
    expect(await violations(onEmbedded((place) => killService(place, 1)))).toEqual([]);
  });

  it.skipIf(!serverUrl)('after kill -9 of the service, on a server', async () => {
    expect(await violations(onServer((place) => killService(place, 1)))).toEqual([]);
  });

  it.skipIf(!serverUrl)('by two nodes that start, write, sync, push and take payments at once', async () => {
    expect(await violations(onEmpty((place) => workTogether(place, 100)))).toEqual([]);
  });

  it.skipIf(!serverUrl)('after SIGTERM to two workers, and no request is cut off', async () => {
    expect(await violations(onServer((place) => stopService(withWorkers(place), 1, 20)))).toEqual([]);
  });
});

describe('a mirror of a board is equal to the board', { timeout: 180_000 }, () => {
  it('after kill -9 of its process, cut connections and a lost cursor', async () => {
    const size = { changes: 120, writers: 4, kills: 2, cuts: 2 };

    expect(await violations(onEmbedded((place) => killMirror(place, size)))).toEqual([]);
  });
});

// Concurrent, since they mostly wait.
describe.concurrent('requests are answered and acknowledged writes kept', { timeout: 180_000 }, () => {
  it.skipIf(!hasCluster)('while PostgreSQL is killed', async () => {
    expect(await violations(onCluster((place, cluster) => killDatabase(place, cluster, 1, 10_000)))).toEqual([]);
  });

  it.skipIf(!hasCluster)('while PostgreSQL is frozen', async () => {
    const duration = { seconds: 6, secondsAfter: 0 };

    expect(await violations(onCluster((place, cluster) => freezeDatabase(place, cluster, duration)))).toEqual([]);
  });

  it.skipIf(!serverUrl)('while PostgreSQL does not respond, and SIGTERM ends the process', async () => {
    const stopped = overNetwork(serverUrl!, (place, network) => stopInSilence(place, network, 3));

    expect(await violations(stopped)).toEqual([]);
  });

  it.skipIf(!redis)('while Redis is frozen', async () => {
    expect(await violations(onEmbedded((place) => freezeRedis(place, redis!, 2)))).toEqual([]);
  });
});
