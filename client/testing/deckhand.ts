/// <reference lib="esnext.disposable" preserve="true" />
import { type Clock, makeClock } from './clock.ts';
import type { SharedDeckhand } from './join.ts';
import type { TestSettings } from './settings.ts';
import { makeStates, type States } from './states.ts';
import { startThread } from './thread.ts';

export type StartOptions = {
  /** Prints the log of the service from this level on; nothing by default. */
  logLevel?: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | undefined;
  /** Settings of the service, as in docs/settings.md: `{ TOKEN_LIFETIME_HOURS: '1' }`. Address and database are fixed. */
  settings?: TestSettings | undefined;
};

/** A running Deckhand: the whole service, with a database in memory. */
export type Deckhand = States & {
  /** Where it listens, as in `http://127.0.0.1:41234`. */
  url: string;
  /** For `joinDeckhand` in other processes, such as the workers of a test runner. */
  shared: SharedDeckhand;
  clock: Clock;
  /** Removes everything, for the next test; the clock shows the real time again. */
  empty: () => Promise<void>;
  /** Ends it; everything in it is lost. */
  stop: () => Promise<void>;
  [Symbol.asyncDispose]: () => Promise<void>;
};

/** Starts a Deckhand on a free port of this machine. It takes the package `deckhand`. */
export async function startDeckhand({ logLevel, settings = {} }: StartOptions = {}): Promise<Deckhand> {
  const { clock, memory } = makeClock();
  const thread = await startThread({
    clock: memory,
    settings: { ...settings, ...(logLevel && { LOG_LEVEL: logLevel }) },
  });
  const { url, admin } = thread.started;

  return {
    url,
    shared: { url, admin },
    clock,
    ...makeStates(url, admin),
    empty: async () => {
      clock.reset();
      await thread.ask({ empty: true });
    },
    stop: thread.stop,
    [Symbol.asyncDispose]: thread.stop,
  };
}
