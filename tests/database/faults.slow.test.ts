import { afterAll, describe, expect, it } from 'vitest';
import { killDatabase } from '../faults/databaseFaults.ts';
import { workTogether } from '../faults/nodeFaults.ts';
import { givenDatabase, givenEmbedded, type Outcome, withRemoval } from '../faults/outcome.ts';
import { givenCluster, hasServerPrograms } from '../faults/privateServer.ts';
import { killService } from '../faults/serviceFaults.ts';
import { removeProcesses } from '../harness/process.ts';
import { findTestServer } from '../harness/server.ts';

/** Three faults of `npm run test:night -- faults`, which has all: frozen and silent servers, SIGTERM under load, mirrors, Redis. */

const hasCluster = hasServerPrograms();
if (!hasCluster) console.log('SKIPPED: faults of PostgreSQL. No PostgreSQL server is installed.');
const { url } = await findTestServer();
const cluster = !url && hasCluster ? await givenCluster() : undefined;
const serverUrl = url ?? cluster?.url;

afterAll(async () => {
  await removeProcesses();
  await cluster?.remove();
});

const violations = async (outcome: Promise<Outcome>) => (await outcome).violations;

describe('acknowledged writes are stored exactly once', { timeout: 180_000 }, () => {
  it('after kill -9 of the service, on the embedded database', async () => {
    expect(await violations(withRemoval(await givenEmbedded(), (place) => killService(place, 1)))).toEqual([]);
  });

  it.skipIf(!serverUrl)('by two nodes that start, write, sync, push and take payments at once', async () => {
    const empty = await givenDatabase(serverUrl!, { isEmpty: true });

    expect(await violations(withRemoval(empty, (place) => workTogether(place, 100)))).toEqual([]);
  });

  it.skipIf(!hasCluster)('while PostgreSQL is killed, and requests are answered', async () => {
    // A private server, so that other tests keep theirs.
    const killed = withRemoval((await givenCluster())!, async (cluster) =>
      withRemoval(await givenDatabase(cluster.url), (place) => killDatabase(place, cluster, 1, 10_000)),
    );

    expect(await violations(killed)).toEqual([]);
  });
});
