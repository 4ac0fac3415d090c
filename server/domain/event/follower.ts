import { forbidden, unauthorized } from '../../../shared/errors.ts';
import type { EventType } from '../../../shared/event.ts';
import type { FeedPlace, Follower, FollowerCredential, FoundEvent, Rights } from './following.ts';
import { isShownTo, type Reader } from './visibility.ts';

/** The limits of what waits for a follower. One that does not read is cut, and resumes by the id of its last event. */
const MOST_WAITING = 1000;
const MOST_WAITING_BYTES = 1024 * 1024;

type Wanted = {
  userId: number | null;
  credential: FollowerCredential;
  place: FeedPlace;
  /** The named or selected project; undefined for all that it may see. */
  project: number | undefined;
  types: readonly EventType[] | null | undefined;
};

export function makeFollower({ userId, credential, place, project, types }: Wanted): Follower {
  const wantedTypes = types && new Set<string>(types);
  let readable: 'all' | ReadonlySet<number> = new Set();
  let reader: Reader | undefined = { owned: new Set(), userId };
  let waiting: { found: FoundEvent; bytes: number }[] = [];
  let waitingBytes = 0;
  let ended: { error: Error | undefined } | undefined;
  let wake = () => {};

  const follower: Follower = {
    userId,
    credential,
    place,
    isLive: false,
    setRights: (rights) => {
      if (!rights)
        return follower.end(unauthorized('Your session or key has ended. Sign in again.', 'credential_invalid'));
      const left = readableWith(rights, project);
      if (left) [readable, reader] = [left, rights.superadmin ? undefined : { owned: rights.owned, userId }];
      else follower.end(forbidden('You have no access to this project any more.', 'no_project_access'));
    },
    sees: (event) =>
      (!wantedTypes || wantedTypes.has(event.type)) &&
      (readable === 'all' || (event.project_id !== null && readable.has(event.project_id))) &&
      isShownTo(reader, event),
    offer: (found, bytes) => {
      if (ended) return;
      waiting.push({ found, bytes });
      waitingBytes += bytes;
      if (waiting.length > MOST_WAITING || waitingBytes > MOST_WAITING_BYTES) follower.end();
      wake();
    },
    moveTo: (place) => {
      if (waiting.length === 0) follower.place = place;
    },
    next: async () => {
      while (waiting.length === 0 && !ended)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      if (ended?.error) throw ended.error;
      const first = waiting.shift();
      if (!first) return undefined;
      waitingBytes -= first.bytes;
      follower.place = first.found.place;
      return first.found;
    },
    end: (error) => {
      ended ??= { error };
      waiting = [];
      wake();
    },
    isEnded: () => ended !== undefined,
  };
  return follower;
}

/** Undefined if the follower may see nothing any more. */
function readableWith(
  { superadmin, projects }: Rights,
  project: number | undefined,
): 'all' | Rights['projects'] | undefined {
  if (project !== undefined) return superadmin || projects.has(project) ? new Set([project]) : undefined;
  if (superadmin) return 'all';
  return projects.size > 0 ? projects : undefined;
}
