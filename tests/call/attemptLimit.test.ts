import { pino } from 'pino';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it, vi } from 'vitest';
import { makeAttemptLimit } from '../../server/limits/attemptLimit.ts';
import { countInMemory, openCounters } from '../../server/limits/counters.ts';
import { makeRateLimit } from '../../server/limits/rateLimit.ts';
import { fakeTimers } from '../harness/timers.ts';

const givenAttemptLimit = () =>
  makeAttemptLimit((keyPrefix, points, duration) => new RateLimiterMemory({ keyPrefix, points, duration }));

describe('guessing', () => {
  const subnet = (at: number) => (at % 256).toString(16).padStart(2, '0');
  const in56 = (at: number) => `2001:db8:1:1${subnet(at)}::1`;
  const in48 = (at: number) => `2001:db8:1:${subnet(at)}00::1`;
  const one = () => 'a@b.test';
  const any = (at: number) => `${at}@b.test`;

  it.each([
    ['any accounts from an IPv4 address', 100, () => '10.0.0.1', any],
    ['one account from a /56', 20, in56, one],
    ['one account from a /48', 40, in48, one],
    ['any accounts from a /56', 300, in56, any],
    ['any accounts from a /48', 1000, in48, any],
  ])('%s is blocked after %i failures', async (_, limit, addressOf, emailOf) => {
    const attemptLimit = givenAttemptLimit();
    const attempt = (at: number) => ({ email: emailOf(at), address: addressOf(at) });

    for (let at = 0; at < limit - 1; at++) await attemptLimit.countFailure(attempt(at));
    await attemptLimit.mustBeAllowed(attempt(limit));
    await attemptLimit.countFailure(attempt(limit - 1));

    await expect(attemptLimit.mustBeAllowed(attempt(limit))).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
    for (const address of ['2001:db8:2::1', '10.0.0.2']) {
      await attemptLimit.mustBeAllowed({ ...attempt(limit), address });
    }
  });

  it('does not group IPv4 addresses, since neighbours are different customers', async () => {
    const attemptLimit = givenAttemptLimit();

    for (let at = 0; at < 1100; at++)
      await attemptLimit.countFailure({ email: 'a@b.test', address: `10.0.${Math.floor(at / 9)}.1` });

    await attemptLimit.mustBeAllowed({ email: 'a@b.test', address: '10.0.0.1' });
  });

  it.each([
    ['an IPv4 address', '10.0.0.1', '10.0.0.1', '10.0.0.2'],
    ['the /48 of an IPv6 address', '2001:db8:1:100::1', '2001:db8:1:ffff::1', '2001:db8:2:100::1'],
  ])('that failed is remembered for %s and any account', async (_, address, same, other) => {
    const attemptLimit = givenAttemptLimit();
    const hasFailed = async (address: string) =>
      (await attemptLimit.mustBeAllowed({ email: 'another@b.test', address })).hasFailed;
    expect(await hasFailed(same)).toBe(false);

    await attemptLimit.countFailure({ email: 'a@b.test', address });

    expect([await hasFailed(same), await hasFailed(other)]).toEqual([true, false]);
  });
});

describe('a failure', () => {
  it('no longer counts after its window, also if the clock was moved there', async () => {
    fakeTimers('Date');
    const attemptLimit = makeAttemptLimit(countInMemory);
    const attempt = { email: 'a@b.test', address: '10.0.0.1' };
    for (let at = 0; at < 10; at++) await attemptLimit.countFailure(attempt);
    await expect(attemptLimit.mustBeAllowed(attempt)).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });

    vi.setSystemTime(Date.now() + 15 * 60_000);

    expect(await attemptLimit.mustBeAllowed(attempt)).toEqual({ hasFailed: false });
  });
});

describe('the rate limit', () => {
  const givenLimit = async (limit: number) =>
    makeRateLimit(await openCounters(undefined, pino({ level: 'silent' })), limit);

  it('gives calls back, never more than the limit, and the key is no longer exhausted', async () => {
    const { count, giveBack, exhausted } = await givenLimit(3);
    const counted = await count('user:1', 3);
    expect(exhausted('user:1')).toMatchObject({ remaining: 0, callsAllowed: 0 });

    expect(await giveBack(counted, 2)).toEqual({ ...counted, remaining: 2 });

    expect(exhausted('user:1')).toBeUndefined();
    expect(await count('user:1', 3)).toMatchObject({ remaining: 0, callsAllowed: 2 });
    expect(await giveBack(await count('user:2', 1), 5)).toMatchObject({ remaining: 3 });
  });

  it('gives nothing back in the next window', async () => {
    fakeTimers('Date', 'performance');
    const { count, giveBack } = await givenLimit(3);
    const counted = await count('user:1', 3);

    await vi.advanceTimersByTimeAsync(60_000);

    expect(await giveBack(counted, 3)).toEqual(counted);
    expect(await count('user:1', 4)).toMatchObject({ remaining: 0, callsAllowed: 3 });
  });

  it('forgets keys whose window has ended, also while another one is always above it', async () => {
    fakeTimers('Date', 'performance');
    const { count } = await givenLimit(1);
    await count('user:1', 1);
    await vi.advanceTimersByTimeAsync(30_000);
    await count('user:2', 1);
    await vi.advanceTimersByTimeAsync(31_000);
    await count('user:1', 1);
    await vi.advanceTimersByTimeAsync(30_000);

    const forgotten = vi.spyOn(Map.prototype, 'delete');
    await count('user:3', 1);

    expect(forgotten).toHaveBeenCalledWith('user:2');
    expect(forgotten).not.toHaveBeenCalledWith('user:1');
    forgotten.mockRestore();
  });
});
