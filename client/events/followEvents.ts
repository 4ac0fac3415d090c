import type { Client } from '../client.ts';
import { isRefusal } from '../errorChecks.ts';
import { DeckhandError } from '../errors.ts';
import type { EventStore, HandlerOptions } from './event.ts';
import { type FeedOptions, readFeed } from './feed.ts';
import { makeHandle } from './handle.ts';
import { insist, untilSignal } from './insist.ts';
import { memoryStore } from './memoryStore.ts';

/** Which events are read, and what to do with them. */
export type FollowEventsOptions<Transaction> = HandlerOptions<Transaction> & {
  /** Only events of this project. Default: of all projects that the client may read. */
  projectId?: number | undefined;
  /**
   * Called before the first event, and when the stored cursor was refused (`cursor_too_old`, `cursor_invalid`): the events in
   * between are lost. Read your rows here; later changes come as events. Without it, the first start begins now, and a
   * refused cursor is thrown.
   */
  begin?: ((why: 'first' | 'lost') => unknown) | undefined;
  /** Ends when the events of now are handled. Default: waits for more. */
  isOnce?: boolean | undefined;
  /** Ends it, without an error. */
  signal?: AbortSignal | undefined;
};

/**
 * Calls the handlers with the events of the feed, in order, from the stored cursor on. A handler that throws gets the same
 * event again, after a pause, and so does one whose store fails; later events wait. Throws what a retry can't help, such as a 401.
 */
export async function followEvents<Transaction = undefined>(
  client: Client,
  options: FollowEventsOptions<Transaction>,
): Promise<void> {
  const { on, otherwise, projectId, isOnce, begin, signal = new AbortController().signal } = options;
  const { store = memoryStore() as unknown as EventStore<Transaction> } = options;
  const handle = makeHandle({ ...options, store });
  const types = otherwise ? undefined : (Object.keys(on) as NonNullable<FeedOptions['types']>);
  if (types?.length === 0) throw new DeckhandError('on is empty. Give it a handler, or set otherwise.');

  // Errors of handlers and of the store, unlike those of the service, all pass some day.
  let ownError: unknown;
  const own = <Result>(work: Promise<Result>) =>
    work.catch((error) => {
      ownError = error;
      throw error;
    });
  const isOwn = (error: unknown) => error === ownError;
  const work = async (after: string, succeeded: () => void) => {
    for await (const { events, cursor } of readFeed(client, { after, types, projectId, isOnce, signal })) {
      // The events of a page share its cursor, which is stored with the last one.
      const cursorOf = (at: number) => events[at]?.cursor ?? (at === events.length - 1 ? cursor : undefined);
      for (const [at, event] of events.entries()) await own(handle(event, cursorOf(at)));
      if (events.length === 0) await own(store.writeCursor(cursor));
      succeeded();
    }
  };
  // Reads the feed again: after a restore of the service, a handler may fail until the stored cursor is refused.
  const workOn = (first: string) =>
    insist(async (succeeded) => work((await own(store.readCursor())) ?? first, succeeded), signal, isOwn);
  const writeCursor = (cursor: string) => insist(() => own(store.writeCursor(cursor)), signal, isOwn);
  const readCursor = () => insist(() => own(store.readCursor()), signal, isOwn);
  await untilSignal(signal, () => fromCursor(client, { readCursor, writeCursor }, { begin, signal }, workOn));
}

/** Why a stored cursor is refused: it is too old, or from before a restore, or what is stored is none. */
const LOST = new Set<unknown>(['cursor_too_old', 'cursor_invalid']);

const NO_BEGIN =
  'The stored place in the feed is refused, so events are lost. Give begin, which reads your rows, or delete the stored cursor, to begin now.';

/** Works from the stored cursor on. Without one, or if it is refused, begins anew. */
export async function fromCursor(
  client: Client,
  store: Pick<EventStore, 'readCursor' | 'writeCursor'>,
  { begin, signal }: { begin: FollowEventsOptions<never>['begin']; signal: AbortSignal },
  work: (after: string) => Promise<void>,
): Promise<void> {
  let after = await store.readCursor();
  for (let why: 'first' | 'lost' = 'first'; ; why = 'lost') {
    if (after === undefined) {
      // Before the rows are read, so that no change gets lost in between.
      const latest = await insist(() => client.events.list.query({ after: 'latest' }, { signal }), signal);
      await begin?.(why);
      after = latest.cursor;
      await store.writeCursor(after);
    }
    try {
      return await work(after);
    } catch (error) {
      if (!isRefusal(error) || !LOST.has(error.reason)) throw error;
      if (!begin) throw new DeckhandError(`${NO_BEGIN} (${error.message})`, { data: error.data, cause: error });
      after = undefined;
    }
  }
}
