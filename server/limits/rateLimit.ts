import type { RateLimiterRes } from 'rate-limiter-flexible';
import { networkOf } from '../address.ts';
import { tooManyRequests } from '../errors.ts';
import type { Counters } from './counters.ts';

const WINDOW_SECONDS = 60;

/** Counts calls per user, or per network while the caller is not signed in. */
export type RateLimit = {
  /** Counts calls for a key, and tells how many of them are within the limit. */
  count: (key: string, calls: number) => Promise<Counted>;
  /** Tells, without a round trip to Redis, that a key has used up its limit. */
  exhausted: (key: string) => Counted | undefined;
};

export type Counted = { limit: number; remaining: number; callsAllowed: number; retryAfterSeconds: number };

export const userKey = (userId: number) => `user:${userId}`;
export const networkKey = (address: string) => `address:${networkOf(address)}`;

/** The 429 of a call above the limit. */
export const overLimit = ({ retryAfterSeconds }: Pick<Counted, 'retryAfterSeconds'>) =>
  tooManyRequests(OVER_LIMIT, retryAfterSeconds, 'over_rate_limit');
export const OVER_LIMIT = 'Too many requests. Try again later.';

export function makeRateLimit(counters: Counters, limit: number): RateLimit {
  const counter = counters.make('limit', limit, WINDOW_SECONDS);
  /** When the window of an exhausted key ends. */
  const exhaustedUntil = new Map<string, number>();

  const exhausted = (key: string): Counted | undefined => {
    const milliseconds = (exhaustedUntil.get(key) ?? 0) - Date.now();
    if (milliseconds <= 0) return undefined;
    return { limit, remaining: 0, callsAllowed: 0, retryAfterSeconds: Math.ceil(milliseconds / 1000) };
  };

  return {
    exhausted,
    count: async (key, calls) => {
      const known = exhausted(key);
      if (known) return known;
      const { consumedPoints, msBeforeNext }: RateLimiterRes = await counter.penalty(key, calls);
      if (consumedPoints >= limit) remember(key, Date.now() + msBeforeNext);
      const before = consumedPoints - calls;
      return {
        limit,
        remaining: Math.max(0, limit - consumedPoints),
        callsAllowed: Math.max(0, Math.min(calls, limit - before)),
        retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
      };
    },
  };

  function remember(key: string, until: number) {
    exhaustedUntil.set(key, until);
    for (const [other, end] of exhaustedUntil) {
      if (end > Date.now()) break;
      exhaustedUntil.delete(other);
    }
  }
}
