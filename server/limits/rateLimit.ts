import { tooManyRequests } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import { networkOf } from '../runtime/address.ts';
import type { Counters } from './counters.ts';

const WINDOW_SECONDS = 60;

/** Counts calls per user, or per network while the caller is not signed in. */
export type RateLimit = {
  /** Counts calls for a key, and tells how many of them are within the limit. */
  count: (key: string, calls: number) => Promise<Counted>;
  /** Takes back the count of calls that were not begun. */
  giveBack: (counted: Counted, calls: number) => Promise<Counted>;
  /** Tells, without a round trip to Redis, that a key has used up its limit. */
  exhausted: (key: string) => Counted | undefined;
};

export type Counted = {
  limit: number;
  remaining: number;
  callsAllowed: number;
  retryAfterSeconds: number;
  /** What was counted, until when. */
  key: string;
  calls: number;
  until: number;
};

/** The reasons of errors before the work of a call began, because of the service and not of the caller: they do not count. */
export const BUSY: ReadonlySet<Reason | undefined> = new Set<Reason>([
  'service_busy',
  'answers_unread',
  'batch_answers_too_large',
]);

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
    const until = exhaustedUntil.get(key) ?? 0;
    const milliseconds = until - Date.now();
    if (milliseconds <= 0) return undefined;
    const retryAfterSeconds = Math.ceil(milliseconds / 1000);
    return { limit, remaining: 0, callsAllowed: 0, retryAfterSeconds, key, calls: 0, until };
  };

  return {
    exhausted,
    count: async (key, calls) => {
      const known = exhausted(key);
      if (known) return known;
      const { consumedPoints, msBeforeNext } = await counter.penalty(key, calls);
      const until = Date.now() + msBeforeNext;
      if (consumedPoints >= limit) remember(key, until);
      const before = consumedPoints - calls;
      return {
        limit,
        remaining: remainingOf(consumedPoints),
        callsAllowed: Math.max(0, Math.min(calls, limit - before)),
        retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
        key,
        calls,
        until,
      };
    },
    giveBack: async (counted, calls) => {
      // In a new window it would be a gift.
      if (Date.now() >= counted.until) return counted;
      const { consumedPoints } = await counter.reward(counted.key, calls);
      if (consumedPoints < limit) exhaustedUntil.delete(counted.key);
      return { ...counted, remaining: remainingOf(consumedPoints) };
    },
  };

  function remainingOf(consumedPoints: number): number {
    return Math.max(0, Math.min(limit, limit - consumedPoints));
  }

  function remember(key: string, until: number) {
    exhaustedUntil.set(key, until);
    for (const [other, end] of exhaustedUntil) {
      if (end > Date.now()) break;
      exhaustedUntil.delete(other);
    }
  }
}
