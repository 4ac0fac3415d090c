import type { DeckhandError } from './errors.ts';

/** Whether a stream may be opened again after this error. */
export const isPassing = (error: DeckhandError): boolean => !isTooLong(error) && isTemporary(error);

/** Whether the same call may succeed later, after however long a pause. */
export const isTemporary = ({ status, requestId }: DeckhandError): boolean =>
  status === undefined ? requestId !== undefined : status === 429 || status >= 500;

export const isOverLimit = (error: DeckhandError) => error.reason === 'over_rate_limit' && !isTooLong(error);

const FIRST_WAIT_SECONDS = 0.25;
/** One window of the rate limit; the caller decides about longer waits. */
const LONGEST_WAIT_SECONDS = 60;

export const isTooLong = ({ retryAfterSeconds = 0 }: DeckhandError) => retryAfterSeconds > LONGEST_WAIT_SECONDS;

/** Exponential backoff with jitter, never before Retry-After. */
export function millisecondsBefore(retry: number, errors: DeckhandError[]): number {
  const backOffSeconds = Math.min(FIRST_WAIT_SECONDS * 2 ** retry, LONGEST_WAIT_SECONDS) * (1 - Math.random() / 2);
  const retryAfterSeconds = Math.max(0, ...errors.map((error) => error.retryAfterSeconds ?? 0));
  return (retryAfterSeconds + backOffSeconds) * 1000;
}
