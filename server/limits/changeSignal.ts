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

/** How processes tell each other: `send` reaches all others. */
export type ChangeChannel = { send: () => void; listen: (onChange: () => void) => void; close?: () => void };

/** Through Redis, else between the workers of a node. Without both, each process looks for changes of others by itself. */
export function makeChangeSignal(
  redisUrl: string | undefined,
  publish: (channel: string, message: string) => void,
  log: Log,
  siblings?: ChangeChannel,
): ChangeSignal {
  const channel = redisUrl === undefined ? siblings : redisChannel(redisUrl, publish, log);
  let pause: NodeJS.Timeout | undefined;
  let isDue = false;
  let isListening = false;
  const send = () => {
    if (!channel) return;
    if (pause) {
      isDue = true;
      return;
    }
    channel.send();
    pause = setTimeout(() => {
      pause = undefined;
      if (isDue) send();
      isDue = false;
    }, SHORTEST_PAUSE_MILLISECONDS).unref();
  };

  return {
    send,
    listen: (onChange) => {
      if (!isListening) channel?.listen(onChange);
      isListening = true;
    },
    close: () => {
      clearTimeout(pause);
      channel?.close?.();
    },
  };
}

function redisChannel(url: string, publish: (channel: string, message: string) => void, log: Log): ChangeChannel {
  const own = randomUUID();
  let listening: Promise<Redis> | undefined;
  return {
    send: () => publish(CHANNEL, own),
    listen: (onChange) => {
      listening = listenTo(url, (sender) => {
        if (sender !== own) onChange();
      });
      listening.catch((error) => log.warn(error, 'Changes of other nodes are noticed some seconds later.'));
    },
    close: () => listening?.then((redis) => redis.disconnect()).catch(() => undefined),
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
