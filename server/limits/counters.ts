import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import type { Log } from '../log.ts';

type Counter = Pick<RateLimiterAbstract, 'get' | 'penalty' | 'reward'>;

export type Counters = {
  /** Counts for each key within a window from its first count on. */
  make: (name: string, points: number, windowSeconds: number) => Counter;
  close: () => void;
};

/** Counts in the process, or in Redis for all nodes together; while Redis is out of reach, each node counts for itself. */
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
    close: () => shared?.close(),
  };
}

/** How long a request waits for Redis, once: from then on the node counts for itself until Redis is back. */
const LONGEST_WAIT_MILLISECONDS = 250;
const RECONNECT_MILLISECONDS = 1000;

async function connectToRedis(url: string, log: Log) {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 2000,
    // Of the check after connecting: a frozen Redis still accepts connections.
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
    log.warn(error, 'Redis is out of reach: this node counts for itself.');
  };
  redis.on('error', (error) => {
    lastError = error;
  });
  redis.on('close', () => lose(lastError));
  redis.on('ready', () => {
    if (!isReachable) log.info('Redis is back: all nodes count together again.');
    isReachable = true;
  });
  await redis.connect().catch(lose);

  return {
    redis,
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

function inTime<Result>(answer: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new Error(`No answer within ${LONGEST_WAIT_MILLISECONDS} ms.`));
    // When the event loop was late, the answer may lie there unread: sockets are read before an immediate runs.
    const timer = setTimeout(() => setImmediate(giveUp), LONGEST_WAIT_MILLISECONDS);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
