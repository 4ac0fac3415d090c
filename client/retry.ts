import { type Call, isSignIn } from './call.ts';
import type { DeckhandError } from './errors.ts';

/**
 * A 429 means that the call was not executed. After other errors it may have been: only queries, mutations with an idempotency
 * key, and sign-ins without a code, are safe. Errors before the request, such as those of a `token` function, are not retried.
 */
export function isSafeToRepeat(call: Call, error: DeckhandError): boolean {
  const { status, requestId } = error;
  if (isTooLong(error)) return false;
  if (status === 429) return true;
  const isUnknown = status === undefined ? requestId !== undefined : PROXY_STATUSES.has(status);
  return isUnknown && (call.kind === 'query' || call.idempotencyKey !== undefined || isPlainSignIn(call));
}

/** A code works once: a repeat would be refused as wrong. */
const isPlainSignIn = (call: Call) => isSignIn(call) && !('code' in (JSON.parse(call.input.text).json ?? {}));

/** Whether a stream may be opened again after this error. */
export const isPassing = (error: DeckhandError): boolean => {
  const { status, requestId } = error;
  if (isTooLong(error)) return false;
  return status === undefined ? requestId !== undefined : status === 429 || status >= 500;
};

export const isOverLimit = (error: DeckhandError) => error.reason === 'over_rate_limit' && !isTooLong(error);

/** What proxies send while the service is down. */
const PROXY_STATUSES = new Set([502, 503, 504]);

const FIRST_WAIT_SECONDS = 0.25;
/** One window of the rate limit; the caller decides about longer waits. */
const LONGEST_WAIT_SECONDS = 60;

const isTooLong = ({ retryAfterSeconds = 0 }: DeckhandError) => retryAfterSeconds > LONGEST_WAIT_SECONDS;

/** Exponential backoff with jitter, never before Retry-After. */
export function millisecondsBefore(retry: number, errors: DeckhandError[]): number {
  const backOffSeconds = Math.min(FIRST_WAIT_SECONDS * 2 ** retry, LONGEST_WAIT_SECONDS) * (1 - Math.random() / 2);
  const retryAfterSeconds = Math.max(0, ...errors.map((error) => error.retryAfterSeconds ?? 0));
  return (retryAfterSeconds + backOffSeconds) * 1000;
}
