import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Log } from '../runtime/log.ts';

export type Counter = {
  get: (key: string) => Promise<Count | null>;
  penalty: (key: string, calls?: number) => Promise<Count>;
  reward: (key: string, calls?: number) => Promise<Count>;
};
type Count = Pick<RateLimiterRes, 'consumedPoints' | 'msBeforeNext'>;

/** Counts per key in a window that starts with the first count. */
export type MakeCounter = (name: string, points: number, windowSeconds: number) => Counter;

export type Counters = {
  make: MakeCounter;
  /** Sends a message to all nodes, while Redis is reachable. */
  publish: (channel: string, message: string) => void;
  /** Whether Redis is reachable; undefined without one. */
  isShared: () => boolean | undefined;
  close: () => void;
};

/** Counts in memory, or in Redis for all nodes; while Redis is unreachable, each node counts in memory. */
export async function openCounters(
  redisUrl: string | undefined,
  log: Log,
  /** In the memory of this process, or of the parent of all workers. */
  makeInMemory: MakeCounter = countInMemory,
): Promise<Counters> {
  const shared = redisUrl === undefined ? undefined : await connectToRedis(redisUrl, log);
  return {
    make: (name, points, duration) => {
      const inMemory = makeInMemory(name, points, duration);
      if (!shared) return inMemory;

      const { redis: storeClient, ifReachable } = shared;
      const inRedis = new RateLimiterRedis({ storeClient, keyPrefix: `deckhand:${name}`, points, duration });
      const count = <Result>(work: (counter: Counter) => Promise<Result>) =>
        ifReachable(
          () => work(inRedis),
          () => work(inMemory),
        );
      return {
        get: (key) => count((counter) => counter.get(key)),
        penalty: (key, calls) => count((counter) => counter.penalty(key, calls)),
        reward: (key, calls) => count((counter) => counter.reward(key, calls)),
      };
    },
    publish: (channel, message) => {
      if (shared?.isReachable()) shared.redis.publish(channel, message).catch(() => undefined);
    },
    isShared: () => shared?.isReachable(),
    close: () => shared?.close(),
  };
}

export const countInMemory: MakeCounter = (keyPrefix, points, duration) => {
  const counter = new RateLimiterMemory({ keyPrefix, points, duration });
  return {
    // A timer removes counts: after the clock was moved, it is late.
    get: async (key) => {
      const count = await counter.get(key);
      return count && count.msBeforeNext > 0 ? count : null;
    },
    penalty: (key, calls) => counter.penalty(key, calls),
    reward: (key, calls) => counter.reward(key, calls),
  };
};

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
    ifReachable: async <Result>(inRedis: () => Promise<Result>, inMemory: () => Promise<Result>): Promise<Result> => {
      if (!isReachable) return inMemory();
      try {
        return await inTime(inRedis());
      } catch (error) {
        if (isReachable) {
          lose(error);
          redis.disconnect(true);
        }
        return inMemory();
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
