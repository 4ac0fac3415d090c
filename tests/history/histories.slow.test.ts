import { afterAll, expect, it } from 'vitest';
import { givenDatabase, givenEmbedded, withRemoval } from '../faults/outcome.ts';
import { removeProcesses } from '../harness/process.ts';
import { findTestServer } from '../harness/server.ts';
import { historyOfKills } from './faults.ts';

/** The short form of `npm run test:night -- faults --only histories`. */

const { url } = await findTestServer();
afterAll(removeProcesses);

it('what callers see while nodes are killed has no anomaly', { timeout: 300_000 }, async () => {
  const place = url ? await givenDatabase(url) : await givenEmbedded();

  const { violations } = await withRemoval(place, () =>
    historyOfKills(place, { calls: 250, seconds: 60, callers: 8, seed: 1 }),
  );

  expect(violations).toEqual([]);
});
