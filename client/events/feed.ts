import type { Client } from '../client.ts';
import type { ChangeEvent } from './event.ts';
import { insist } from './insist.ts';

/** Events in order, and the cursor after the last. */
export type Batch = { events: (ChangeEvent & { cursor?: string })[]; cursor: string };

export type FeedOptions = {
  after: string;
  types?: EventTypes | undefined;
  projectId?: number | undefined;
  /** Ends with the events of now, instead of waiting for more. */
  isOnce?: boolean | undefined;
  signal: AbortSignal;
};
type EventTypes = NonNullable<Parameters<Client['events']['list']['query']>[0]>['types'];

/** Then the feed is read again: without events of these types, the cursor of a stream becomes too old. */
const LONGEST_STREAM_MILLISECONDS = 3_600_000;
const LARGEST_BATCH = 200;

/**
 * Reads the feed page by page, then waits for more in a stream, until the signal. Errors that pass are retried. Throws what a retry
 * can't help, such as `cursor_too_old`.
 */
export async function* readFeed(client: Client, options: FeedOptions): AsyncGenerator<Batch, void, undefined> {
  const { types, projectId: project_id, isOnce, signal } = options;
  const which = { ...(types && { types }), ...(project_id !== undefined && { project_id }) };
  for (let after = options.after; ; ) {
    for (let hasMore = true; hasMore; ) {
      const list = () => client.events.list.query({ ...which, after, limit: LARGEST_BATCH }, { signal });
      const page = await insist(list, signal);
      [after, hasMore] = [page.cursor, page.has_more];
      yield page;
    }
    if (isOnce) return;
    const ending = new AbortController();
    const end = () => ending.abort();
    const timer = setTimeout(end, LONGEST_STREAM_MILLISECONDS);
    signal.addEventListener('abort', end, { once: true });
    try {
      const stream = inBatches(client.events.follow({ ...which, after }, { signal: ending.signal }));
      // After an error that passes, the stream is at its end, and the feed is read again.
      const read = () => insist(() => stream.next(), signal);
      for (let next = await read(); !next.done; next = await read()) {
        after = next.value.cursor;
        yield next.value;
      }
    } finally {
      end();
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  }
}

/** What has arrived while a batch was worked on is the next batch. */
async function* inBatches(stream: ReturnType<Client['events']['follow']>): AsyncGenerator<Batch, void, undefined> {
  const read = () => {
    const next = stream.next();
    // Thrown where it is awaited.
    next.catch(() => undefined);
    return next;
  };
  let next = read();
  for (let first = await next; !first.done; first = await next) {
    const events = [first.value];
    next = read();
    while (events.length < LARGEST_BATCH) {
      const part = await Promise.race([next, afterOthers()]);
      if (!part || part.done) break;
      events.push(part.value);
      next = read();
    }
    yield { events, cursor: (events.at(-1) ?? first.value).cursor };
  }
}

/** Resolves after what has arrived already. */
const afterOthers = () => new Promise<undefined>((resolve) => setTimeout(resolve, 0));
