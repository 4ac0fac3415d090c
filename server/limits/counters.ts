import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import type { Log } from '../runtime/log.ts';

type Counter = Pick<RateLimiterAbstract, 'get' | 'penalty' | 'reward'>;

export type Counters = {
  /** Counts per key in a window that starts with the first count. */
  make: (name: string, points: number, windowSeconds: number) => Counter;
  /** Whether Redis is reachable; undefined without one. */
  isShared: () => boolean | undefined;
  close: () => void;
};

/** Counts in memory, or in Redis for all nodes; while Redis is unreachable, each node counts in memory. */
export async function openCounters(redisUrl: string | undefined, log: Log): Promise<Counters> {
  const shared = redisUrl === undefined ? undefined : await connectToRedis(redisUrl, log);
  return {
    make: (name, points, duration) => {
      const inProcess = new RateLimiterMemory({ keyPrefix: name, points, duration });
      if (!shared) return inProcess;

      const { redis: storeClient, ifReachable } = shared;
      const inRedis = new RateLimiterRedis({ storeClient, keyPrefix: `deckhand:${name}`, points, duration });
      return {
        get: (key) =>
          ifReachable(
            () => inRedis.get(key),
            () => inProcess.get(key),
          ),
        penalty: (key, calls) =>
          ifReachable(
            () => inRedis.penalty(key, calls),
            () => inProcess.penalty(key, calls),
          ),
        reward: (key, calls) =>
          ifReachable(
            () => inRedis.reward(key, calls),
            () => inProcess.reward(key, calls),
          ),
      };
    },
    isShared: () => shared?.isReachable(),
    close: () => shared?.close(),
  };
}

/** The timeout for Redis. After the first one, the node counts in memory until Redis is back. */
const LONGEST_WAIT_MILLISECONDS = 250;
const RECONNECT_MILLISECONDS = 1000;

async function connectToRedis(url: string, log: Log) {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 2000,
    // For the check after connecting, since a frozen Redis still accepts connections.
    commandTimeout: 1000,
    disconnectTimeout: 1,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => RECONNECT_MILLISECONDS,
  });

  let isReachable = true;
  let lastError: Error | undefined;
  const lose = (error: unknown) => {
    if (!isReachable) return;
    isReachable = false;
    log.warn(error, 'Redis is unreachable: this node counts in memory.');
  };
  redis.on('error', (error) => {
    lastError = error;
  });
  redis.on('close', () => lose(lastError));
  redis.on('ready', () => {
    if (!isReachable) log.info('Redis is back: the nodes share their counts again.');
    isReachable = true;
  });
  await redis.connect().catch(lose);

  return {
    redis,
    isReachable: () => isReachable,
    ifReachable: async <Result>(inRedis: () => Promise<Result>, inProcess: () => Promise<Result>): Promise<Result> => {
      if (!isReachable) return inProcess();
      try {
        return await inTime(inRedis());
      } catch (error) {
        if (isReachable) {
          lose(error);
          redis.disconnect(true);
        }
        return inProcess();
      }
    },
    close: () => {
      isReachable = false;
      redis.disconnect();
    },
  };
}

function inTime<Result>(response: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new Error(`No answer within ${LONGEST_WAIT_MILLISECONDS} ms.`));
    // If the event loop was blocked, the response may be unread; sockets are read before the immediate runs.
    const timer = setTimeout(() => setImmediate(giveUp), LONGEST_WAIT_MILLISECONDS);
    response.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
