import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  type RateLimiterRes,
} from 'rate-limiter-flexible';
import type { Settings } from '../env.ts';

const WINDOW_SECONDS = 60;

type LimitSettings = Pick<Settings, 'RATE_LIMIT_PER_MINUTE' | 'REDIS_URL'>;

export type RateLimit = {
  /** Counts calls of one user or address, and tells how many of them are still within the limit. */
  count: (key: string, calls: number) => Promise<Counted>;
  /** Takes calls back that were counted for somebody who did not make them. */
  takeBack: (key: string, calls: number) => Promise<void>;
  close: () => Promise<void>;
};

export type Counted = { limit: number; remaining: number; callsAllowed: number; retryAfterSeconds: number };

/** Counts in the process, or in Redis for all nodes together; while Redis is out of reach, each node counts for itself. */
export async function makeRateLimit(settings: LimitSettings, log: FastifyBaseLogger): Promise<RateLimit> {
  const limit = settings.RATE_LIMIT_PER_MINUTE;
  const inProcess = new RateLimiterMemory({ points: limit, duration: WINDOW_SECONDS });
  const redis = settings.REDIS_URL ? await connectToRedis(settings.REDIS_URL, log) : undefined;
  const limiter: RateLimiterAbstract = redis
    ? new RateLimiterRedis({
        storeClient: redis,
        keyPrefix: 'deckhand:limit',
        points: limit,
        duration: WINDOW_SECONDS,
        insuranceLimiter: inProcess,
      })
    : inProcess;

  return {
    count: async (key, calls) => {
      const { consumedPoints, msBeforeNext }: RateLimiterRes = await limiter.penalty(key, calls);
      const before = consumedPoints - calls;
      return {
        limit,
        remaining: Math.max(0, limit - consumedPoints),
        callsAllowed: Math.max(0, Math.min(calls, limit - before)),
        retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
      };
    },
    takeBack: async (key, calls) => {
      await limiter.reward(key, calls);
    },
    close: async () => {
      redis?.disconnect();
    },
  };
}

async function connectToRedis(url: string, log: FastifyBaseLogger) {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 2000,
    commandTimeout: 1000,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
  });
  redis.on('error', (error) => log.warn(error, 'Redis is out of reach: this node counts for itself.'));
  await redis.connect().catch(() => undefined);
  return redis;
}

export function sendLimitHeaders(reply: FastifyReply, { limit, remaining }: Counted): void {
  reply.headers({ 'X-RateLimit-Limit': limit, 'X-RateLimit-Remaining': remaining });
}

/** Whom unauthenticated calls are counted for. */
export const addressKey = (request: FastifyRequest) => `address:${request.ip}`;
export const userKey = (userId: number) => `user:${userId}`;
