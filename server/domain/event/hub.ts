import { toFailure, tooManyRequests } from '../../../shared/errors.ts';
import { traitsOf } from '../../../shared/event.ts';
import type { Db } from '../../database/query.ts';
import type { ChangeSignal } from '../../limits/changeSignal.ts';
import type { Log } from '../../runtime/log.ts';
import { makeLooks, type NextPause } from '../../runtime/looks.ts';
import { isAtLeast, readEvents } from './feed.ts';
import type { EventHub, EventRow, FeedPlace, Follower } from './following.ts';
import { findRights } from './rights.ts';

/** How often a node looks for events and rights, if it is not told about a change. */
const INTERVAL_MILLISECONDS = 1000;
/** After a change it looks at once, but never more often than this. */
const SHORTEST_PAUSE_MILLISECONDS = 50;
/** What is handed out at once: less than may wait for a follower, so that one that reads keeps up. */
const MOST_AT_ONCE = 500;
const MOST_BYTES_AT_ONCE = 512 * 1024;

const MOST_OF_ONE_USER = 20;

type HubOptions = {
  db: Db;
  log: Log;
  keyMaxDays: number | undefined;
  signal: ChangeSignal;
  mostFollowers: number;
};

/** So may an event that only a later version knows. The rights are read again before it is handed out. */
function mayChangeRights({ type }: EventRow): boolean {
  const traits = traitsOf(type);
  return !traits || traits.changesRights === true;
}

export function makeEventHub({ db, log, keyMaxDays, signal, mostFollowers }: HubOptions): EventHub {
  const followers = new Set<Follower>();
  const listeners: (() => void)[] = [];
  /** Up to where events were handed out; undefined while there is nobody to hand them to. */
  let place: FeedPlace | undefined;
  let mostRead = MOST_AT_ONCE;
  let rightsReadAt = 0;
  let isClosed = false;
  let hasFailed = false;
  const looks = makeLooks(look);

  return {
    mustHaveRoom,
    add: (follower) => {
      if (isClosed) return follower.end();
      mustHaveRoom(follower.userId);
      if (followers.size === 0) {
        rightsReadAt = performance.now();
        signal.listen(tellOfChange);
      }
      followers.add(follower);
      looks.begin(INTERVAL_MILLISECONDS);
    },
    remove,
    join: (follower, end) => {
      if (place && !isAtLeast(follower.place, place)) return false;
      // A cursor may be ahead of the feed: others must not miss what comes before it.
      place ??= isAtLeast(follower.place, end) ? end : follower.place;
      follower.isLive = true;
      looks.wake();
      return true;
    },
    announce: () => {
      tellOfChange();
      signal.send();
    },
    onChange: (listener) => {
      listeners.push(listener);
      signal.listen(tellOfChange);
    },
    countFollowers: () => followers.size,
    close: () => {
      isClosed = true;
      void looks.stop();
      signal.close();
      for (const follower of followers) follower.end();
    },
  };

  function mustHaveRoom(userId: number | null): void {
    const own = [...followers].filter((follower) => follower.userId === userId);
    if (own.length >= MOST_OF_ONE_USER)
      throw tooManyRequests('You have too many event streams. Close one of them first.', 5, 'too_many_at_once');
    if (followers.size >= mostFollowers)
      throw tooManyRequests('There are too many event streams. Try again shortly.', 5, 'service_busy');
  }

  function remove(follower: Follower): void {
    if (!followers.delete(follower)) return;
    // A later follower sets it anew, or the hub would read everything since then.
    if (liveFollowers().length === 0) place = undefined;
    if (followers.size === 0) looks.pause();
  }

  function tellOfChange(): void {
    if (followers.size > 0) looks.wake();
    for (const listener of listeners) listener();
  }

  async function look(): Promise<NextPause> {
    let hasMore = false;
    const begun = performance.now();
    try {
      if (begun - rightsReadAt >= INTERVAL_MILLISECONDS - SHORTEST_PAUSE_MILLISECONDS) await readRights();
      if (place) hasMore = await readNew(place);
      hasFailed = false;
    } catch (error) {
      if (!hasFailed) log.warn(error, 'New events could not be read: followers wait until they can.');
      hasFailed = true;
    }
    // Those that do not read would not leave by themselves.
    for (const follower of followers) if (follower.isEnded()) remove(follower);
    const pause = hasMore ? SHORTEST_PAUSE_MILLISECONDS : INTERVAL_MILLISECONDS;
    // Counted from the end of a look: a slow database gets pauses, too.
    const shortest = performance.now() - begun + SHORTEST_PAUSE_MILLISECONDS;
    return { pause: followers.size > 0 ? pause : null, shortest };
  }

  /** Returns whether there are more events to read now. */
  async function readNew(from: FeedPlace): Promise<boolean> {
    const found = await readEvents(db, { place: from, limit: mostRead }, 'all').catch(endAfterLoss);
    if (!found) return false;
    const { events, places, next, hasMore } = found;
    if (events.some(mayChangeRights)) await readRights();
    // All followers left meanwhile, and the place is that of another one.
    if (place !== from) return true;
    const handedOut = handOut(events, places);
    const isCut = handedOut < events.length;
    place = isCut ? (places[handedOut - 1] as FeedPlace) : next;
    // Of large events fewer fit: more than that would be read again each time.
    mostRead = isCut ? handedOut + 1 : Math.min(mostRead * 2, MOST_AT_ONCE);
    for (const follower of liveFollowers()) if (isAtLeast(place, follower.place)) follower.moveTo(place);
    return isCut || hasMore;
  }

  /** After a fail-over that lost events, each follower reconnects, and its own cursor tells whether it has seen them. */
  function endAfterLoss(error: unknown): undefined {
    if (toFailure(error).reason !== 'cursor_too_old') throw error;
    for (const follower of liveFollowers()) follower.end();
  }

  /** Returns how many events were handed out; the others are read again. */
  function handOut(events: EventRow[], places: FeedPlace[]): number {
    const live = liveFollowers();
    let allBytes = 0;
    for (const [at, event] of events.entries()) {
      const place = places[at] as FeedPlace;
      const bytes = JSON.stringify(event).length;
      allBytes += bytes;
      if (at > 0 && allBytes > MOST_BYTES_AT_ONCE) return at;
      for (const follower of live) {
        // It may have read further by itself.
        const isNew = follower.sees(event) && !isAtLeast(follower.place, place);
        if (isNew) follower.offer({ event, place }, bytes);
      }
    }
    return events.length;
  }

  async function readRights(): Promise<void> {
    const begun = performance.now();
    const asked = [...followers];
    const credentials = new Map(asked.map(({ credential }) => [credential.name, credential]));
    const rights = await findRights({ db, services: { keyMaxDays } }, [...credentials.values()]);
    for (const follower of asked) follower.setRights(rights.get(follower.credential.name));
    rightsReadAt = begun;
  }

  function liveFollowers(): Follower[] {
    return [...followers].filter(({ isLive }) => isLive);
  }
}
