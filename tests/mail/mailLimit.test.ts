import { RateLimiterMemory } from 'rate-limiter-flexible';
import { expect, it } from 'vitest';
import { makeMailLimit } from '../../server/limits/mailLimit.ts';

const givenMailLimit = () =>
  makeMailLimit((keyPrefix, points, duration) => new RateLimiterMemory({ keyPrefix, points, duration }));
const REFUSED = { code: 'TOO_MANY_REQUESTS' };

it.each([
  ['an IPv4 address', 100, () => '10.0.0.1', '10.0.0.2'],
  ['a /56', 300, (at: number) => `2001:db8:1:1${(at % 256).toString(16).padStart(2, '0')}::1`, '2001:db8:2::1'],
])('mails that anybody asks for are limited for %s to %i an hour, and not for others', async (_, most, from, other) => {
  const { countOfNetwork } = givenMailLimit();

  for (let at = 0; at < most; at++) await countOfNetwork(from(at));

  await expect(countOfNetwork(from(most))).rejects.toMatchObject(REFUSED);
  await countOfNetwork(other);
});

it('mails of a user are limited to 20 for an address and 300 in all', async () => {
  const { countOfUser } = givenMailLimit();

  for (let at = 0; at < 20; at++) await countOfUser(1, at % 2 ? 'Ann@example.test' : 'ann@example.test');
  await expect(countOfUser(1, 'ann@example.test')).rejects.toMatchObject(REFUSED);
  await countOfUser(2, 'ann@example.test');
  for (let at = 20; at < 300; at++) await countOfUser(1, `${at}@example.test`);

  await expect(countOfUser(1, 'one-more@example.test')).rejects.toMatchObject(REFUSED);
});
