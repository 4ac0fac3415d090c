import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RateLimiterRes } from 'rate-limiter-flexible';
import { describe, tooManyRequests } from '../errors.ts';
import { canonicalAddress, networkOf } from '../security/address.ts';
import { asBadRequest } from './body.ts';
import type { Counters } from './counters.ts';

const WINDOW_SECONDS = 60;

export type RateLimit = {
  /** Counts calls of one user or address, and tells how many of them are still within the limit. */
  count: (key: string, calls: number) => Promise<Counted>;
  /** Tells, without asking any store, that nothing is left of the limit of a key. */
  exhausted: (key: string) => Counted | undefined;
};

export type Counted = { limit: number; remaining: number; callsAllowed: number; retryAfterSeconds: number };

export function makeRateLimit(counters: Counters, limit: number): RateLimit {
  const counter = counters.make('limit', limit, WINDOW_SECONDS);
  /** Until when nothing is left for a key. */
  const exhaustedUntil = new Map<string, number>();

  const exhausted = (key: string): Counted | undefined => {
    const milliseconds = (exhaustedUntil.get(key) ?? 0) - performance.now();
    if (milliseconds <= 0) return undefined;
    return { limit, remaining: 0, callsAllowed: 0, retryAfterSeconds: Math.ceil(milliseconds / 1000) };
  };

  return {
    exhausted,
    count: async (key, calls) => {
      const known = exhausted(key);
      if (known) return known;
      const { consumedPoints, msBeforeNext }: RateLimiterRes = await counter.penalty(key, calls);
      if (consumedPoints >= limit) remember(key, performance.now() + msBeforeNext);
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
      if (end > performance.now()) break;
      exhaustedUntil.delete(other);
    }
  }
}

/** Counts every request of pages and documents for the address that it comes from, whoever sends it. */
export function limitAddresses(scope: FastifyInstance, rateLimit: RateLimit): void {
  scope.addHook('onRequest', async (request, reply) => {
    const counted = await rateLimit.count(addressKey(request), 1);
    sendLimitHeaders(reply, counted);
    if (counted.callsAllowed === 0) throw tooManyRequests(TOO_MANY, counted.retryAfterSeconds);
  });
}

/** Counts only what is refused: a provider that signs its notifications may send as many as it has. */
export function limitRefusals(scope: FastifyInstance, rateLimit: RateLimit): void {
  scope.setErrorHandler(async (error, request) => {
    if (describe(asBadRequest(error)).status !== 400) throw error;
    const { callsAllowed, retryAfterSeconds } = await rateLimit.count(addressKey(request), 1);
    throw callsAllowed === 0 ? tooManyRequests(TOO_MANY, retryAfterSeconds) : error;
  });
}

export const TOO_MANY = 'Too many requests. Try again later.';

export function sendLimitHeaders(reply: FastifyReply, { limit, remaining }: Counted): void {
  reply.headers({ 'X-RateLimit-Limit': limit, 'X-RateLimit-Remaining': remaining });
}

/** Whom unauthenticated calls are counted for. */
export const addressKey = (request: FastifyRequest) => networkKey(addressOf(request));
export const networkKey = (address: string) => `address:${networkOf(address)}`;

/** Where a request comes from. Some proxies add a port; what is no address at all counts as the proxy's own. */
export function addressOf({ ip, socket }: FastifyRequest): string {
  const [, withoutPort = ip] =
    /^([\d.]+):\d+$|^\[(.+)\](?::\d+)?$/.exec(ip)?.filter((part) => part !== undefined) ?? [];
  return canonicalAddress(withoutPort) ?? canonicalAddress(socket.remoteAddress ?? '') ?? 'unknown';
}

export const userKey = (userId: number) => `user:${userId}`;
