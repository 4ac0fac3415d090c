import { tooManyRequests } from '../../shared/errors.ts';
import { JsonText } from '../runtime/jsonText.ts';

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

/** The maximum size of one response as JSON, and of all responses of a batch, which stay in memory until the last one is done. */
export const LARGEST_RESPONSE_BYTES = 8 * 1024 * 1024;

/** The size limits of the responses to one request. */
export type ResponseBudget = {
  /** Before a call: throws if the other responses of the batch, or the caller's unread ones, have used up the limit. */
  mustNotBeSpent: () => void;
  spend: (response: unknown) => void;
};

export function makeResponseBudget(unsent: UnsentResponse | undefined, calls: number): ResponseBudget {
  let bytes = 0;
  return {
    mustNotBeSpent: () => {
      unsent?.mustBeFew();
      if (calls > 1 && bytes >= LARGEST_RESPONSE_BYTES) throw batchTooLarge();
    },
    spend: (response) => {
      bytes += bytesOf(response);
      unsent?.setBytes(bytes);
    },
  };
}

const batchTooLarge = () =>
  tooManyRequests('The answers of this batch are too large. Retry the remaining calls.', 1, 'batch_answers_too_large');

const FIELD_BYTES = 20;

/** For shorter texts, counting escapes is not worth the time. */
const SHORTEST_COUNTED_TEXT = 1000;

/** The approximate size of a value as JSON. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return textBytesOf(value) + FIELD_BYTES;
  if (typeof value !== 'object' || value === null) return FIELD_BYTES;
  if (value instanceof Date) return FIELD_BYTES;
  if (value instanceof JsonText) return value.pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  let bytes = FIELD_BYTES;
  if (Array.isArray(value)) for (const part of value) bytes += bytesOf(part);
  // Four times as fast as a list of the values.
  else for (const name in value) bytes += bytesOf((value as Record<string, unknown>)[name]);
  return bytes;
}

const textBytesOf = (text: string) =>
  text.length < SHORTEST_COUNTED_TEXT ? text.length : Buffer.byteLength(JSON.stringify(text));
