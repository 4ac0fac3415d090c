import { expect, it } from 'vitest';
import { fuzz } from '../fuzz/fuzz.ts';
import { repeat } from '../fuzz/repeat.ts';
import { makeFuzzWorld } from '../fuzz/world.ts';
import { runs, seed } from '../harness/sample.ts';
import { givenService } from '../harness/service.ts';
import { givenWorld } from '../harness/world.ts';

/** A short form of `npm run test:night -- fuzz`. */

const REQUESTS = 250 * runs;

it('random and hostile requests get documented answers and never a 500', async () => {
  // A separate service: its failed sign-ins do not count against other tests.
  const service = await givenService();
  const { asSuperadmin } = await givenWorld(service);
  const world = await makeFuzzWorld(service.url, asSuperadmin.token!);

  const { findings, sent } = await fuzz({ world, seed, requests: REQUESTS, concurrency: 8 });

  expect(findings.map(({ faults, request }) => ({ faults, again: repeat(request, service.url) }))).toEqual([]);
  expect(sent).toBe(REQUESTS);
  await service.app.close();
});
