import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it } from 'vitest';
import { makeGuessing } from '../../server/limits/guessing.ts';

const givenGuessing = () =>
  makeGuessing((keyPrefix, points, duration) => new RateLimiterMemory({ keyPrefix, points, duration }));

describe('guessing', () => {
  it('is blocked after 100 failures from an address, for any accounts', async () => {
    const guessing = givenGuessing();
    const from = (address: string, account: number) => ({ email: `${account}@example.test`, address });

    for (let account = 0; account < 99; account++) await guessing.countFailure(from('10.0.0.1', account));
    await guessing.mustBeAllowed(from('10.0.0.1', 100));
    await guessing.countFailure(from('10.0.0.1', 99));

    await expect(guessing.mustBeAllowed(from('10.0.0.1', 100))).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
    await guessing.mustBeAllowed(from('10.0.0.2', 1));
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
    const guessing = givenGuessing();
    const attempt = (at: number) => ({ email: email(at), address: addressOf(at) });

    for (let at = 0; at < limit - 1; at++) await guessing.countFailure(attempt(at));
    await guessing.mustBeAllowed(attempt(limit));
    await guessing.countFailure(attempt(limit - 1));

    await expect(guessing.mustBeAllowed(attempt(limit))).rejects.toMatchObject(BLOCKED);
    await guessing.mustBeAllowed({ ...attempt(limit), address: '2001:db8:2::1' });
  });

  it('does not group IPv4 addresses, since neighbours are different customers', async () => {
    const guessing = givenGuessing();

    for (let at = 0; at < 1100; at++)
      await guessing.countFailure({ email: 'a@b.test', address: `10.0.${Math.floor(at / 9)}.1` });

    await guessing.mustBeAllowed({ email: 'a@b.test', address: '10.0.0.1' });
  });
});
