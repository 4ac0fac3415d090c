import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it } from 'vitest';
import { makeAttemptLimit } from '../../server/limits/attemptLimit.ts';

const givenAttemptLimit = () =>
  makeAttemptLimit((keyPrefix, points, duration) => new RateLimiterMemory({ keyPrefix, points, duration }));

describe('guessing', () => {
  it('is blocked after 100 failures from an address, for any accounts', async () => {
    const attemptLimit = givenAttemptLimit();
    const from = (address: string, account: number) => ({ email: `${account}@example.test`, address });

    for (let account = 0; account < 99; account++) await attemptLimit.countFailure(from('10.0.0.1', account));
    await attemptLimit.mustBeAllowed(from('10.0.0.1', 100));
    await attemptLimit.countFailure(from('10.0.0.1', 99));

    await expect(attemptLimit.mustBeAllowed(from('10.0.0.1', 100))).rejects.toMatchObject({
      code: 'TOO_MANY_REQUESTS',
    });
    await attemptLimit.mustBeAllowed(from('10.0.0.2', 1));
  });
});

describe('guessing from many IPv6 networks of one customer', () => {
  const BLOCKED = { code: 'TOO_MANY_REQUESTS' };
  const subnet = (at: number) => at.toString(16).padStart(2, '0');

  it.each([
    [
      'one account from a /56',
      20,
      { addressOf: (at: number) => `2001:db8:1:1${subnet(at)}::1`, email: () => 'a@b.test' },
    ],
    [
      'one account from a /48',
      40,
      { addressOf: (at: number) => `2001:db8:1:${subnet(at)}00::1`, email: () => 'a@b.test' },
    ],
    [
      'all accounts from a /56',
      300,
      { addressOf: (at: number) => `2001:db8:1:1${subnet(at % 256)}::1`, email: (at: number) => `${at}@b.test` },
    ],
    [
      'all accounts from a /48',
      1000,
      { addressOf: (at: number) => `2001:db8:1:${subnet(at % 256)}00::1`, email: (at: number) => `${at}@b.test` },
    ],
  ])('%s is blocked after %i failures', async (_, limit, { addressOf, email }) => {
    const attemptLimit = givenAttemptLimit();
    const attempt = (at: number) => ({ email: email(at), address: addressOf(at) });

    for (let at = 0; at < limit - 1; at++) await attemptLimit.countFailure(attempt(at));
    await attemptLimit.mustBeAllowed(attempt(limit));
    await attemptLimit.countFailure(attempt(limit - 1));

    await expect(attemptLimit.mustBeAllowed(attempt(limit))).rejects.toMatchObject(BLOCKED);
    await attemptLimit.mustBeAllowed({ ...attempt(limit), address: '2001:db8:2::1' });
  });

  it('does not group IPv4 addresses, since neighbours are different customers', async () => {
    const attemptLimit = givenAttemptLimit();

    for (let at = 0; at < 1100; at++)
      await attemptLimit.countFailure({ email: 'a@b.test', address: `10.0.${Math.floor(at / 9)}.1` });

    await attemptLimit.mustBeAllowed({ email: 'a@b.test', address: '10.0.0.1' });
  });
});

describe('a failure', () => {
  const hasFailed = async (attemptLimit: ReturnType<typeof givenAttemptLimit>, address: string, email = 'a@b.test') =>
    (await attemptLimit.mustBeAllowed({ email, address })).hasFailed;

  it('is remembered for the address, for any account, and for no other IPv4 address', async () => {
    const attemptLimit = givenAttemptLimit();

    expect(await hasFailed(attemptLimit, '10.0.0.1')).toBe(false);
    await attemptLimit.countFailure({ email: 'a@b.test', address: '10.0.0.1' });

    expect(await hasFailed(attemptLimit, '10.0.0.1')).toBe(true);
    expect(await hasFailed(attemptLimit, '10.0.0.1', 'another@b.test')).toBe(true);
    expect(await hasFailed(attemptLimit, '10.0.0.2')).toBe(false);
  });

  it('is remembered for the /48 of an IPv6 address', async () => {
    const attemptLimit = givenAttemptLimit();
    await attemptLimit.countFailure({ email: 'a@b.test', address: '2001:db8:1:100::1' });

    expect(await hasFailed(attemptLimit, '2001:db8:1:ffff::1', 'another@b.test')).toBe(true);
    expect(await hasFailed(attemptLimit, '2001:db8:2:100::1')).toBe(false);
  });
});
