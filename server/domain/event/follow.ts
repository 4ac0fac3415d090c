import { setTimeout as pause } from 'node:timers/promises';
import { type TrackedEnvelope, tracked } from '@trpc/server';
import { toFailure } from '../../../shared/errors.ts';
import type { EventFollow } from '../../../shared/event.ts';
import { Leaving } from '../../runtime/leaving.ts';
import type { ProjectContext } from '../access/context.ts';
import { namedProject } from '../account/member.ts';
import { type EventRow, type FeedPlace, latestPlace, readableBy, readEvents, readPlace, toCursor } from './feed.ts';
import { makeFollower } from './follower.ts';
import { credentialOf, findRights } from './rights.ts';

/** Events as they happen, each with the cursor behind it. */
export type Following = AsyncIterable<TrackedEnvelope<EventRow>> & {
  /** The cursor of now, also while nothing happens: events up to there were sent, or are not for this follower. */
  cursor: () => string;
};

const PAGE = 500;

/** The page of a follower that has ended. */
const NOTHING = (next: FeedPlace) => ({ events: [], places: [], next, feedEnd: next, hasMore: false });

/** Follows the events that `events.list` would return, from a cursor or from now on. */
export async function followEvents(
  context: ProjectContext,
  { types, project_id, after, lastEventId }: EventFollow,
  signal: AbortSignal | undefined,
): Promise<Following> {
  const { db, caller, services, countMore } = context;
  const { eventHub, queue } = services;
  eventHub.mustHaveRoom(caller.id);
  const named = project_id == null ? undefined : await namedProject(context, { project_id });
  const cursor = lastEventId ?? (after === 'latest' ? undefined : after);
  const place =
    cursor == null
      ? await latestPlace(db)
      : await readPlace(context, cursor, lastEventId == null ? 'after' : 'lastEventId');
  const credential = credentialOf(caller);
  const project = named ?? (caller.isProjectChosen ? caller.project?.id : undefined);
  const follower = makeFollower({ userId: caller.id, credential, place, project, types });
  follower.setRights((await findRights(context, [credential])).get(credential.name));
  eventHub.add(follower);
  const leaving = new Leaving();
  if (signal?.aborted) leave();
  signal?.addEventListener('abort', leave, { once: true });

  const readPage = (from: FeedPlace) =>
    queue.run(
      `user:${caller.id}`,
      async () => {
        const { readable, reader } = await readableBy(context, named);
        return readEvents(db, { place: from, types, limit: PAGE, reader }, readable);
      },
      { leaving },
    );
  let isFirst = true;
  return {
    cursor: () => toCursor(follower.place),
    [Symbol.asyncIterator]: () => readOn(),
  };

  /** First pages of its own, until it is as far as the hub; then what the hub hands out. */
  async function* readOn() {
    /** The end of the feed, once it was reached. */
    let end = cursor == null ? place : undefined;
    let isIdle = false;
    try {
      while (!follower.isEnded() && !(end && eventHub.join(follower, end))) {
        // The hub is ahead, although there is nothing left to read: the events between them were removed.
        if (isIdle) await pause(1000);
        const { events, places, next, hasMore, feedEnd } = await readPaid(follower.place);
        for (const [at, event] of events.entries()) {
          if (follower.isEnded()) break;
          follower.place = places[at] as FeedPlace;
          // Its rights may be narrower by now.
          if (follower.sees(event)) yield tracked(toCursor(follower.place), event);
        }
        follower.place = next;
        end = hasMore ? undefined : feedEnd;
        isIdle = events.length === 0 && !hasMore;
      }
      for (let each = await follower.next(); each; each = await follower.next()) {
        yield tracked(toCursor(each.place), each.event);
      }
    } finally {
      leave();
    }
  }

  /** Each page but the first counts as a call. Above the limit, the stream waits for the next minute. */
  async function readPaid(from: FeedPlace): Promise<Awaited<ReturnType<typeof readPage>>> {
    if (isFirst || !countMore) {
      isFirst = false;
      return readPage(from);
    }
    for (;;) {
      try {
        return await countMore(1, () => readPage(from));
      } catch (error) {
        const { reason, retryAfterSeconds = 1 } = toFailure(error);
        if (reason !== 'over_rate_limit') throw error;
        // In short steps, since it may end meanwhile.
        for (let waited = 0; waited < retryAfterSeconds && !follower.isEnded(); waited++) await pause(1000);
        if (follower.isEnded()) return NOTHING(from);
      }
    }
  }

  function leave(): void {
    leaving.leave();
    follower.end();
    eventHub.remove(follower);
  }
}
