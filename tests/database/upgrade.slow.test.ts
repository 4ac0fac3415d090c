import { afterAll, describe, expect, it } from 'vitest';
import { FIRST, givenOldVersion, missingHistory, PREVIOUS } from '../faults/oldVersion.ts';
import { givenDatabase, withRemoval } from '../faults/outcome.ts';
import { givenCluster } from '../faults/privateServer.ts';
import { upgrade } from '../faults/upgrade.ts';
import { removeProcesses } from '../harness/process.ts';
import { isNight } from '../harness/sample.ts';
import { findTestServer } from '../harness/server.ts';

/** The short form of `npm run test:night -- upgrades`. */

const server = await findTestServer();
const cluster = server.url ? undefined : await givenCluster();
const serverUrl = server.url ?? cluster?.url;
const missing = serverUrl ? missingHistory(PREVIOUS) : 'No PostgreSQL server is reachable or installed.';
if (missing) console.log(`SKIPPED: upgrades from earlier versions. ${missing}`);

afterAll(async () => {
  await removeProcesses();
  await cluster?.remove();
});

const SIZE = { cards: 3000, nodes: 1, requests: 100, longestMigrationSeconds: 60 };

describe
  .skipIf(missing)
  .each([
    { version: PREVIOUS, how: 'under load, with its nodes beside new ones' },
    ...(isNight ? [{ version: FIRST, how: 'of its database' }] : []),
  ])('an upgrade from the $version.name', { timeout: 300_000 }, ({ version, how }) => {
  it(`${how}, fails no request, loses no write, and ends with the tables of the entities`, async () => {
    const old = await givenOldVersion(version);

    const { violations } = await withRemoval(await givenDatabase(serverUrl!, { isEmpty: true }), (place) =>
      upgrade(place, old, SIZE),
    );

    expect(violations).toEqual([]);
  });
});
