import { type Call, isSignIn } from './call.ts';
import type { DeckhandError } from './errors.ts';
import { isTooLong } from './retry.ts';

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

/** What proxies send while the service is down. */
const PROXY_STATUSES = new Set([502, 503, 504]);
