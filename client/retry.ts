import type { Call } from './call.ts';
import type { DeckhandError } from './errors.ts';

/**
 * A call that got a 429 was not executed. After other failures that is unknown: a query may be executed twice, and a mutation
 * with an idempotency key will not be. An error before the request, as of a `token` function, is left to the caller.
 */
export function isSafeToRepeat({ kind, idempotencyKey }: Call, error: DeckhandError): boolean {
  const { status, requestId } = error;
  if (isTooLong(error)) return false;
  if (status === 429) return true;
  const isUnknown = status === undefined ? requestId !== undefined : PASSING_STATUSES.has(status);
  return isUnknown && (kind === 'query' || idempotencyKey !== undefined);
}

/** Whether the call has to wait for the next window of the rate limit. */
export const isOverLimit = (error: DeckhandError) => error.reason === 'over_rate_limit' && !isTooLong(error);

/** The statuses of a proxy while the service is down. */
const PASSING_STATUSES = new Set([502, 503, 504]);

const FIRST_WAIT_SECONDS = 0.25;
/** The rate limit window is a minute; a longer wait is left to the caller. */
const LONGEST_WAIT_SECONDS = 60;

const isTooLong = ({ retryAfterSeconds = 0 }: DeckhandError) => retryAfterSeconds > LONGEST_WAIT_SECONDS;

/** Exponential backoff with jitter, so that many clients do not retry at the same time; never before Retry-After. */
export function millisecondsBefore(retry: number, errors: DeckhandError[]): number {
  const backOffSeconds = Math.min(FIRST_WAIT_SECONDS * 2 ** retry, LONGEST_WAIT_SECONDS) * (1 - Math.random() / 2);
  const retryAfterSeconds = Math.max(...errors.map((error) => error.retryAfterSeconds ?? 0));
  return (retryAfterSeconds + backOffSeconds) * 1000;
}
