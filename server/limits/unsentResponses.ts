import { tooManyRequests } from '../../shared/errors.ts';

/** The limit of unsent responses in memory per user, or per address without a token. */
const MOST_UNSENT_BYTES = 64 * 1024 * 1024;

/** Smaller responses are not counted, since the rate limit bounds them. */
const SMALLEST_COUNTED_BYTES = 64 * 1024;

export type UnsentResponses = {
  /** Throws a 429 if the caller has too many. */
  mustBeFew: (key: string) => void;
  /** The response to a new request of the caller; without a size it counts nothing. */
  open: (key: string) => UnsentResponse;
};

export type UnsentResponse = {
  mustBeFew: () => void;
  /** Its size in memory: an estimate while it is made, then the real one. */
  setBytes: (bytes: number) => void;
  /** When it was sent, or its connection closed. */
  release: () => void;
};

/** The unsent responses in the other workers. */
export type UnsentElsewhere = {
  bytesOf: (key: string) => number;
  /** Tells them the sum of this worker. */
  publish: (key: string, bytes: number) => void;
};
const NOWHERE: UnsentElsewhere = { bytesOf: () => 0, publish: () => undefined };

/** Limits the memory of unsent responses. */
export function makeUnsentResponses(mostBytes = MOST_UNSENT_BYTES, elsewhere = NOWHERE): UnsentResponses {
  const unsent = new Map<string, number>();
  const change = (key: string, bytes: number) => {
    const sum = (unsent.get(key) ?? 0) + bytes;
    if (sum > 0) unsent.set(key, sum);
    else unsent.delete(key);
    elsewhere.publish(key, sum);
  };
  const mustBeFew = (key: string) => {
    if ((unsent.get(key) ?? 0) + elsewhere.bytesOf(key) <= mostBytes) return;
    throw tooManyRequests('You have too many unread answers. Read them first.', 1, 'answers_unread');
  };

  return {
    mustBeFew,
    open: (key) => {
      let counted = 0;
      let isReleased = false;
      const setBytes = (bytes: number) => {
        const next = bytes < SMALLEST_COUNTED_BYTES || isReleased ? 0 : bytes;
        if (next !== counted) change(key, next - counted);
        counted = next;
      };
      const release = () => {
        isReleased = true;
        setBytes(0);
      };
      return { mustBeFew: () => mustBeFew(key), setBytes, release };
    },
  };
}
