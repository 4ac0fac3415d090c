import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Log } from '../runtime/log.ts';

/** Tells the nodes that something changed. */
export type ChangeSignal = {
  send: () => void;
  /** Starts listening; only the first call counts. */
  listen: (onChange: () => void) => void;
  close: () => void;
};

const CHANNEL = 'deckhand:events';

/** A burst of changes is one message at its beginning, and one at its end. */
const SHORTEST_PAUSE_MILLISECONDS = 50;

/** Through Redis; without it, each node looks for changes by itself. */
export function makeChangeSignal(
  redisUrl: string | undefined,
  publish: (channel: string, message: string) => void,
  log: Log,
): ChangeSignal {
  if (redisUrl === undefined) return { send: () => undefined, listen: () => undefined, close: () => undefined };
  const own = randomUUID();
  let pause: NodeJS.Timeout | undefined;
  let isDue = false;
  let listening: Promise<Redis> | undefined;
  const send = () => {
    if (pause) {
      isDue = true;
      return;
    }
    publish(CHANNEL, own);
    pause = setTimeout(() => {
      pause = undefined;
      if (isDue) send();
      isDue = false;
    }, SHORTEST_PAUSE_MILLISECONDS).unref();
  };

  return {
    send,
    listen: (onChange) => {
      listening ??= listenTo(redisUrl, (sender) => {
        if (sender !== own) onChange();
      });
      listening.catch((error) => log.warn(error, 'Changes of other nodes are noticed only every second.'));
    },
    close: () => {
      clearTimeout(pause);
      listening?.then((redis) => redis.disconnect()).catch(() => undefined);
    },
  };
}

/** A connection of its own, since one that listens can do nothing else. It reconnects, and listens again, by itself. */
async function listenTo(url: string, onMessage: (message: string) => void): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url, { connectTimeout: 2000, maxRetriesPerRequest: null, retryStrategy: () => 1000 });
  // The connection of the counters reports it.
  redis.on('error', () => undefined);
  redis.on('message', (_channel, message) => onMessage(message));
  redis.subscribe(CHANNEL).catch(() => undefined);
  return redis;
}
