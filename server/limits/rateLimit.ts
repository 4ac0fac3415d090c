import { toFailure, tooManyRequests } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import { networkOf } from '../runtime/address.ts';
import type { Counters } from './counters.ts';

const WINDOW_SECONDS = 60;

/** Counts calls per user, or per network while the caller is not signed in. */
export type RateLimit = {
  /** Counts calls for a key, and tells how many of them are within its own limit or, without one, the default. */
  count: (key: string, calls: number, ownLimit?: number | null) => Promise<Counted>;
  /**
   * Counts further calls for the work of one, or throws the 429 before it; never more than the limit, so that a call alone in its
   * minute is never above it. `note` gets each new count. Those of refused work are taken back.
   */
  countWhile: <Result>(
    counted: Counted,
    calls: number,
    work: () => Promise<Result>,
    note: (counted: Counted) => void,
  ) => Promise<Result>;
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

/**
 * The reasons of errors before the work of a call began that do not count: others keep the service busy. What a caller causes alone
 * counts (`too_many_at_once`, `answers_unread`), or refused calls would be free. Calls beyond the size of their batch do not,
 * since each request has others that count.
 */
export const BUSY: ReadonlySet<Reason | undefined> = new Set<Reason>(['service_busy', 'batch_answers_too_large']);

export const userKey = (userId: number) => `user:${userId}`;
export const networkKey = (address: string) => `address:${networkOf(address)}`;

/** The 429 of a call above the limit. */
export const overLimit = ({ retryAfterSeconds }: Pick<Counted, 'retryAfterSeconds'>) =>
  tooManyRequests(OVER_LIMIT, retryAfterSeconds, 'over_rate_limit');
export const OVER_LIMIT = 'Too many requests. Try again later.';

export function makeRateLimit(counters: Counters, defaultLimit: number): RateLimit {
  const counter = counters.make('limit', defaultLimit, WINDOW_SECONDS);
  /** When the windows of exhausted keys end, and the limits that they have used up. */
  const exhaustedKeys = new Map<string, Pick<Counted, 'until' | 'limit'>>();

  const exhausted = (key: string): Counted | undefined => {
    const known = exhaustedKeys.get(key);
    if (!known || known.until <= Date.now()) return undefined;
    const retryAfterSeconds = Math.ceil((known.until - Date.now()) / 1000);
    return { ...known, remaining: 0, callsAllowed: 0, retryAfterSeconds, key, calls: 0 };
  };

  const rateLimit: RateLimit = {
    exhausted,
    count: async (key, calls, ownLimit) => {
      const limit = ownLimit ?? defaultLimit;
      const known = exhausted(key);
      if (known && known.limit >= limit) return known;
      const { consumedPoints, msBeforeNext } = await counter.penalty(key, calls);
      const until = Date.now() + msBeforeNext;
      if (consumedPoints >= limit) remember(key, { until, limit });
      else if (known) exhaustedKeys.delete(key);
      const before = consumedPoints - calls;
      return {
        limit,
        remaining: remainingOf(limit, consumedPoints),
        callsAllowed: Math.max(0, Math.min(calls, limit - before)),
        retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
        key,
        calls,
        until,
      };
    },
    countWhile: async ({ key, limit }, wanted, work, note) => {
      const calls = Math.min(wanted, limit - 1);
      const further = await rateLimit.count(key, calls, limit);
      note(further);
      const takeBack = async () => note(await rateLimit.giveBack(further, further.calls));
      if (further.callsAllowed < calls) {
        await takeBack();
        throw overLimit(further);
      }
      try {
        return await work();
      } catch (error) {
        if (BUSY.has(toFailure(error).reason)) await takeBack();
        throw error;
      }
    },
    giveBack: async (counted, calls) => {
      // In a new window it would be a gift.
      if (Date.now() >= counted.until) return counted;
      const { consumedPoints } = await counter.reward(counted.key, calls);
      if (consumedPoints < counted.limit) exhaustedKeys.delete(counted.key);
      return { ...counted, remaining: remainingOf(counted.limit, consumedPoints) };
    },
  };
  return rateLimit;

  function remainingOf(limit: number, consumedPoints: number): number {
    return Math.max(0, Math.min(limit, limit - consumedPoints));
  }

  function remember(key: string, exhausted: Pick<Counted, 'until' | 'limit'>) {
    // To the end: the loop stops at the first one that has not ended.
    exhaustedKeys.delete(key);
    exhaustedKeys.set(key, exhausted);
    for (const [other, { until }] of exhaustedKeys) {
      if (until > Date.now()) break;
      exhaustedKeys.delete(other);
    }
  }
}
