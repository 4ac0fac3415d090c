import type { z } from 'zod';
import type { Event } from '../../../shared/event.ts';

/** Types only, since the context of a procedure has the hub, and the hub imports what needs a context. */

export type EventRow = z.output<typeof Event>;

/**
 * A place in the feed: behind this event, with the time when somebody was there. Its incarnation is that of the database
 * (`incarnation.ts`): places that are stored in the database need none.
 */
export type FeedPlace = { transaction: string; id: string; seconds: number; incarnation?: string | null };

/** An event, and the place behind it. */
export type FoundEvent = { event: EventRow; place: FeedPlace };

/** Reads new events once for all followers of this process, as long as there are any. */
export type EventHub = {
  /** Throws a 429 if there are too many followers, of this user or of all. */
  mustHaveRoom: (userId: number | null) => void;
  /** The same, if others were added meanwhile. */
  add: (follower: Follower) => void;
  remove: (follower: Follower) => void;
  /**
   * Hands events to a follower from its place on; `end` is that of the feed when it looked. False if the hub is ahead of it: it has
   * to read on by itself first.
   */
  join: (follower: Follower, end: FeedPlace) => boolean;
  /** Tells this process and the others that there are new events. */
  announce: () => void;
  /** Calls this after each change that any process announces. */
  onChange: (listener: () => void) => void;
  countFollowers: () => number;
  /** Ends all streams; new ones end at once, so that their clients go to another node. */
  close: () => void;
};

/** Somebody who gets events as they happen. */
export type Follower = {
  readonly userId: number | null;
  readonly credential: FollowerCredential;
  /** Behind the last event that it got; without events, as far as the hub has looked. */
  place: FeedPlace;
  /** Whether the hub hands events to it; until then, it reads pages of its own. */
  isLive: boolean;
  /** Sets what the follower may see; ends it if that is nothing. */
  setRights: (rights: Rights | undefined) => void;
  sees: (event: EventRow) => boolean;
  /** Keeps an event until it is read. */
  offer: (found: FoundEvent, bytes: number) => void;
  /** Notes that the hub has looked as far as this, and found nothing more for it. */
  moveTo: (place: FeedPlace) => void;
  /** The next event, as soon as there is one; undefined at the end. Throws why it may not go on. */
  next: () => Promise<FoundEvent | undefined>;
  end: (error?: Error) => void;
  isEnded: () => boolean;
};

/** What a follower signed in with: a session, or the secret of a key. */
export type FollowerCredential = { name: string; session_id?: string; key_id?: number; secret_hash?: string };

/** `owned` are those of the projects that the user owns. */
export type Rights = { superadmin: boolean; projects: ReadonlySet<number>; owned: ReadonlySet<number> };
