import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { tooManyRequests } from '../../shared/errors.ts';
import { networkOf } from '../runtime/address.ts';
import type { MakeCounter } from './counters.ts';

/** Counts failed attempts per account and network, so that an attacker is blocked without locking out the user. */
export type AttemptLimit = {
  /** Throws a 429 after too many failures from the network; tells whether there was one in the last 15 minutes. */
  mustBeAllowed: (attempt: Attempt) => Promise<{ hasFailed: boolean }>;
  countFailure: (attempt: Attempt) => Promise<void>;
};

type Attempt = { email: string; address: string };

const WINDOW_SECONDS = 15 * 60;

/**
 * The limits of failures in a window, for one account and for all. IPv6 customers get whole networks: at least a /64, often a
 * /56 or a /48. For IPv4 only the address counts.
 */
const LIMITS = [
  { bits: 64, forAccount: 10, forAll: 100 },
  { bits: 56, forAccount: 20, forAll: 300 },
  { bits: 48, forAccount: 40, forAll: 1000 },
] as const;

export function makeAttemptLimit(makeCounter: MakeCounter, name = 'guess'): AttemptLimit {
  const counters = LIMITS.flatMap(({ bits, forAccount, forAll }) => [
    {
      bits,
      limit: forAccount,
      counter: makeCounter(`${name}-account-${bits}`, forAccount, WINDOW_SECONDS),
      keyOf: ofAccount,
    },
    { bits, limit: forAll, counter: makeCounter(`${name}-network-${bits}`, forAll, WINDOW_SECONDS), keyOf: ofAll },
  ]);
  const countersFor = ({ email, address }: Attempt) =>
    counters
      .filter(({ bits }) => bits === 64 || isIPv6(address))
      .map(({ bits, limit, counter, keyOf }) => ({ limit, counter, key: keyOf(networkOf(address, bits), email) }));

  return {
    mustBeAllowed: async (attempt) => {
      const failures = await Promise.all(
        countersFor(attempt).map(async ({ limit, counter, key }) => {
          const failed = await counter.get(key);
          if (failed && failed.consumedPoints >= limit) {
            throw tooManyRequests(
              'Too many failed attempts. Try again later.',
              Math.ceil(failed.msBeforeNext / 1000),
              'too_many_failures',
            );
          }
          return failed?.consumedPoints ?? 0;
        }),
      );
      return { hasFailed: failures.some((count) => count > 0) };
    },
    countFailure: async (attempt) => {
      await Promise.all(countersFor(attempt).map(({ counter, key }) => counter.penalty(key)));
    },
  };
}

/** Hashed, since e-mail addresses can be long and are not stored as text. */
const ofAccount = (network: string, email: string) =>
  createHash('sha256')
    .update(`${network} ${folded(email)}`)
    .digest('base64url');

/** Equal for all addresses that the database's `lower` makes equal: unlike JavaScript's, it makes `İ` an `i`. */
const folded = (email: string) => email.toLowerCase().toUpperCase().normalize('NFD').replaceAll(/\p{M}/gu, '');

const ofAll = (network: string) => network;
