import type { DeckhandError } from '../../../client/client.ts';
import { client, isOwnRequest, RETRY_MILLISECONDS } from './service.ts';

export type ChangeEvent = Awaited<ReturnType<typeof client.events.list.query>>['events'][number];
/** Without an event, some may have been missed: what is shown must be read again. `isOwn` if this page made the change. */
export type Listener = (event: ChangeEvent | undefined, isOwn: boolean) => void;

/** Where the feed of a project ends now; undefined if the user may not read it. */
export const feedPlace = (project_id: number) =>
  client.events.list.query({ after: 'latest', project_id }).then(
    ({ cursor }) => cursor,
    () => undefined,
  );

/** Tells of every change in a project behind this place, until the signal aborts. */
export function followProject(
  project_id: number,
  userId: number,
  place: string | undefined,
  tell: Listener,
  signal: AbortSignal,
): void {
  // Anybody can send a request with the same id, so the user counts, too; the page has no key.
  const isOwn = (event: ChangeEvent) =>
    isOwnRequest(event.request_id) && event.user_id === userId && event.key_id === null;
  followEvents({ project_id, after: place }, (event) => tell(event, event !== undefined && isOwn(event)), signal);
}

type Which = NonNullable<Parameters<typeof client.events.follow>[0]>;

/**
 * Tells of these events until the signal aborts. A hidden tab follows nothing, since a browser has few connections to one host;
 * when it is visible again, everything is read anew.
 */
export function followEvents(which: Which, tell: (event: ChangeEvent | undefined) => void, signal: AbortSignal): void {
  let stream = new AbortController();
  const follow = async (isAgain: boolean) => {
    stream.abort();
    if (document.hidden) return;
    const own = new AbortController();
    stream = own;
    const options = { signal: AbortSignal.any([own.signal, signal]) };
    try {
      const from = isAgain ? undefined : which.after;
      const after = from ?? (await client.events.list.query({ ...which, after: 'latest' }, options)).cursor;
      if (isAgain) tell(undefined);
      for await (const event of client.events.follow({ ...which, after }, options)) tell(event);
    } catch (error) {
      if (options.signal.aborted) return;
      // The right to read it is lost, which is noticed when everything is read again.
      if ((error as DeckhandError).status === 403) return tell(undefined);
      // The session has ended, or the place is no longer kept: calls of the page tell why.
      setTimeout(() => own === stream && follow(true), RETRY_MILLISECONDS);
    }
  };
  document.addEventListener('visibilitychange', () => follow(true), { signal });
  addEventListener('online', () => follow(true), { signal });
  follow(false);
}

const BURST_MILLISECONDS = 200;

/** Many rows that change at once make many events: does the work once for all of them, soon after the first. */
export function oncePerBurst(work: () => unknown): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      work();
    }, BURST_MILLISECONDS);
  };
}
