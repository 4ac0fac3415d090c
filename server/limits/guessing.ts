import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import { networkOf } from '../address.ts';
import { tooManyRequests } from '../errors.ts';

/** Counts failed attempts for each account and network, so that a network is slowed down and nobody else locked out. */
export type Guessing = {
  /** Refuses a network that has failed too often. */
  mustBeAllowed: (attempt: Attempt) => Promise<void>;
  countFailure: (attempt: Attempt) => Promise<void>;
};

type Attempt = { email: string; address: string };

const WINDOW_SECONDS = 15 * 60;

/**
 * Failures in a window, for one account and for all of them. Providers give whole networks of IPv6 to one customer: a /64
 * at least, often a /56 or a /48. Of IPv4 only the address is counted.
 */
const LIMITS = [
  { bits: 64, forAccount: 10, forAll: 100 },
  { bits: 56, forAccount: 20, forAll: 300 },
  { bits: 48, forAccount: 40, forAll: 1000 },
] as const;

type MakeCounter = (
  name: string,
  points: number,
  windowSeconds: number,
) => Pick<RateLimiterAbstract, 'get' | 'penalty'>;

export function makeGuessing(makeCounter: MakeCounter): Guessing {
  const counters = LIMITS.flatMap(({ bits, forAccount, forAll }) => [
    {
      bits,
      limit: forAccount,
      counter: makeCounter(`guess-account-${bits}`, forAccount, WINDOW_SECONDS),
      keyOf: ofAccount,
    },
    { bits, limit: forAll, counter: makeCounter(`guess-network-${bits}`, forAll, WINDOW_SECONDS), keyOf: ofAll },
  ]);
  const countersFor = ({ email, address }: Attempt) =>
    counters
      .filter(({ bits }) => bits === 64 || isIPv6(address))
      .map(({ bits, limit, counter, keyOf }) => ({ limit, counter, key: keyOf(networkOf(address, bits), email) }));

  return {
    mustBeAllowed: async (attempt) => {
      await Promise.all(
        countersFor(attempt).map(async ({ limit, counter, key }) => {
          const failed = await counter.get(key);
          if (failed && failed.consumedPoints >= limit) {
            throw tooManyRequests('Too many failed attempts. Try again later.', Math.ceil(failed.msBeforeNext / 1000));
          }
        }),
      );
    },
    countFailure: async (attempt) => {
      await Promise.all(countersFor(attempt).map(({ counter, key }) => counter.penalty(key)));
    },
  };
}

/** E-mail addresses are as long as callers like, and are not kept as text. */
const ofAccount = (network: string, email: string) =>
  createHash('sha256').update(`${network} ${email.toLowerCase()}`).digest('base64url');
const ofAll = (network: string) => network;
