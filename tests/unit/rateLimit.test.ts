import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openCounters } from '../../server/limits/counters.ts';
import { makeRateLimit } from '../../server/limits/rateLimit.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const givenLimit = async (limit: number) =>
  makeRateLimit(await openCounters(undefined, pino({ level: 'silent' })), limit);

it('gives calls back, and the key is no longer exhausted', async () => {
  const { count, giveBack, exhausted } = await givenLimit(3);
  const counted = await count('user:1', 3);
  expect(exhausted('user:1')).toMatchObject({ remaining: 0, callsAllowed: 0 });

  const left = await giveBack(counted, 2);

  expect(left).toEqual({ ...counted, remaining: 2 });
  expect(exhausted('user:1')).toBeUndefined();
  expect(await count('user:1', 3)).toMatchObject({ remaining: 0, callsAllowed: 2 });
});

it('gives nothing back in the next window', async () => {
  const { count, giveBack } = await givenLimit(3);
  const counted = await count('user:1', 3);

  await vi.advanceTimersByTimeAsync(60_000);

  expect(await giveBack(counted, 3)).toEqual(counted);
  expect(await count('user:1', 4)).toMatchObject({ remaining: 0, callsAllowed: 3 });
});

it('never says that more remains than the limit', async () => {
  const { count, giveBack } = await givenLimit(3);

  expect(await giveBack(await count('user:1', 1), 5)).toMatchObject({ remaining: 3 });
});
