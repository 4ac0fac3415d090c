import type { FastifyBaseLogger } from 'fastify';
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';

export type Counters = {
  /** Counts for each key within a window from its first count on. */
  make: (name: string, points: number, windowSeconds: number) => RateLimiterAbstract;
  close: () => void;
};

/** Counts in the process, or in Redis for all nodes together; while Redis is out of reach, each node counts for itself. */
export async function openCounters(redisUrl: string | undefined, log: FastifyBaseLogger): Promise<Counters> {
  const redis = redisUrl === undefined ? undefined : await connectToRedis(redisUrl, log);
  return {
    make: (name, points, duration) => {
      const inProcess = new RateLimiterMemory({ keyPrefix: name, points, duration });
      if (!redis) return inProcess;
      return new RateLimiterRedis({
        storeClient: redis,
        keyPrefix: `deckhand:${name}`,
        points,
        duration,
        insuranceLimiter: inProcess,
      });
    },
    close: () => redis?.disconnect(),
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
