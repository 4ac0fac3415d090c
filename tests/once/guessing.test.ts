import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it } from 'vitest';
import { networkOf } from '../../server/http/rateLimit.ts';
import { makeGuessing } from '../../server/security/guessing.ts';

const givenGuessing = () =>
  makeGuessing((keyPrefix, points, duration) => new RateLimiterMemory({ keyPrefix, points, duration }));

describe('guessing', () => {
  it('is stopped after 100 failures from an address, for whatever accounts', async () => {
    const guessing = givenGuessing();
    const from = (address: string, account: number) => ({ email: `${account}@example.test`, address });

    for (let account = 0; account < 99; account++) await guessing.countFailure(from('10.0.0.1', account));
    await guessing.mustBeAllowed(from('10.0.0.1', 100));
    await guessing.countFailure(from('10.0.0.1', 99));

    await expect(guessing.mustBeAllowed(from('10.0.0.1', 100))).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
    await guessing.mustBeAllowed(from('10.0.0.2', 1));
  });
});

describe('an address', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['2001:db8:1:2::', '2001:db8:1:2'],
  ])('%s counts as %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
