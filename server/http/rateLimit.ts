import { isIPv6 } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RateLimiterRes } from 'rate-limiter-flexible';
import type { Counters } from './counters.ts';

const WINDOW_SECONDS = 60;

export type RateLimit = {
  /** Counts calls of one user or address, and tells how many of them are still within the limit. */
  count: (key: string, calls: number) => Promise<Counted>;
  /** Takes calls back that were counted for somebody who did not make them. */
  takeBack: (key: string, calls: number) => Promise<void>;
};

export type Counted = { limit: number; remaining: number; callsAllowed: number; retryAfterSeconds: number };

export function makeRateLimit(counters: Counters, limit: number): RateLimit {
  const counter = counters.make('limit', limit, WINDOW_SECONDS);
  return {
    count: async (key, calls) => {
      const { consumedPoints, msBeforeNext }: RateLimiterRes = await counter.penalty(key, calls);
      const before = consumedPoints - calls;
      return {
        limit,
        remaining: Math.max(0, limit - consumedPoints),
        callsAllowed: Math.max(0, Math.min(calls, limit - before)),
        retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
      };
    },
    takeBack: async (key, calls) => {
      await counter.reward(key, calls);
    },
  };
}

export function sendLimitHeaders(reply: FastifyReply, { limit, remaining }: Counted): void {
  reply.headers({ 'X-RateLimit-Limit': limit, 'X-RateLimit-Remaining': remaining });
}

/** Whom unauthenticated calls are counted for. */
export const addressKey = (request: FastifyRequest) => `address:${networkOf(request.ip)}`;
export const userKey = (userId: number) => `user:${userId}`;

/** An address of version 6 stands for its network: whoever has one address there has 2^64 of them. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped || !isIPv6(address)) return mapped ?? address;

  const [front = [], back = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0');
  return [...front, ...zeros, ...back].slice(0, 4).join(':');
}
