import { createHash } from 'node:crypto';
import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import { tooManyRequests } from '../errors.ts';

/** Counts failed attempts for each account and address, so that an address is slowed down and nobody else locked out. */
export type Guessing = {
  /** Refuses an address that has failed too often. */
  mustBeAllowed: (attempt: Attempt) => Promise<void>;
  countFailure: (attempt: Attempt) => Promise<void>;
};

type Attempt = { email: string; address: string };

const WINDOW_SECONDS = 15 * 60;
const MOST_FOR_ACCOUNT = 10;
const MOST_FOR_ADDRESS = 100;

type MakeCounter = (name: string, points: number, windowSeconds: number) => RateLimiterAbstract;

export function makeGuessing(makeCounter: MakeCounter): Guessing {
  const counters = [
    {
      limit: MOST_FOR_ACCOUNT,
      counter: makeCounter('guess-account', MOST_FOR_ACCOUNT, WINDOW_SECONDS),
      keyOf: ({ email, address }: Attempt) => hash(`${address} ${email.toLowerCase()}`),
    },
    {
      limit: MOST_FOR_ADDRESS,
      counter: makeCounter('guess-address', MOST_FOR_ADDRESS, WINDOW_SECONDS),
      keyOf: ({ address }: Attempt) => address,
    },
  ];

  return {
    mustBeAllowed: async (attempt) => {
      await Promise.all(
        counters.map(async ({ limit, counter, keyOf }) => {
          const failed = await counter.get(keyOf(attempt));
          if (failed && failed.consumedPoints >= limit) {
            throw tooManyRequests('Too many failed attempts. Try again later.', Math.ceil(failed.msBeforeNext / 1000));
          }
        }),
      );
    },
    countFailure: async (attempt) => {
      await Promise.all(counters.map(({ counter, keyOf }) => counter.penalty(keyOf(attempt))));
    },
  };
}

/** E-mail addresses are as long as callers like, and are not kept as text. */
const hash = (text: string) => createHash('sha256').update(text).digest('base64url');
