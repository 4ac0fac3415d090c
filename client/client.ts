import { LARGEST_BATCH } from '../shared/limits.ts';
import { type Call, isSignIn } from './call.ts';
import { toDeckhandError, withCallerStack } from './errors.ts';
import { makeFollow } from './follow.ts';
import { readHeaders, validHeaders } from './headers.ts';
import { keyHeader, newId, validKey } from './idempotencyKey.ts';
import { writeInput } from './input.ts';
import { makeLine } from './line.ts';
import { type ClientOptions, checkOptions } from './options.ts';
import { type Client, type Send, withDefaults } from './proxy.ts';
import { sendRequest } from './request.ts';
import { withVersions } from './serviceVersion.ts';
import { openSession, withSignIn } from './session.ts';
import { withTimeOut } from './timeOut.ts';
import { traceHeaders } from './trace.ts';

export type * from './calls.ts';
export { type ErrorOf, isDeckhandError, isRefusal, type ReasonOf, type Refusal } from './errorChecks.ts';
export { DeckhandError, type RefusalData } from './errors.ts';
export type { FurtherHeaders, HeadersOption } from './headers.ts';
export type { Hooks, RequestEvent, ResponseEvent, RetryEvent } from './hooks.ts';
export type { ClientOptions } from './options.ts';
export type * from './procedures.ts';
export type { Client } from './proxy.ts';
export type { Reason } from './reasons.ts';
export type { SessionOptions, SignedIn, SignIn } from './session.ts';

/** A typed client of every procedure: `client.cards.create.mutate({ title: 'First card' })`. Calls made at once are batched. */
export function createClient(given: ClientOptions): Client {
  checkOptions(given);
  const options = withVersions(given);
  const { url, fetch, retries = 3, maxInFlight = 100, traceparent } = options;
  const { onRequest, onResponse, onRetry } = options;
  const session = openSession(
    options,
    (...parts) => client.auth.authenticate.mutate(...parts),
    (proof) => client.account.prove.mutate(proof),
    (token) => client.auth.exchange.mutate({ token }),
  );

  const lineOf = (largestBatch: number, tokenOf: () => Promise<string | undefined>) =>
    makeLine({
      largestBatch,
      maxInFlight,
      retries,
      send: (calls, signal) => {
        const [first] = calls;
        const headers = async () => {
          const [token, further] = [await tokenOf(), await readHeaders(options.headers)];
          return {
            ...further,
            ...first?.headers,
            ...first?.trace,
            ...(token && { authorization: `Bearer ${token}` }),
            ...projectHeader(first),
            ...keyHeader(calls),
            ...requestIdHeader(calls),
          };
        };
        return sendRequest({ url, fetch }, calls, headers, signal);
      },
    });
  const line = lineOf(LARGEST_BATCH, session.token);
  // Never batched with other calls: those that wait for the sign-in would deadlock.
  const signInLine = lineOf(1, async () => undefined);

  const send: Send = async ({ path, kind, input: given, options, caller }) => {
    const { signal, projectId, idempotencyKey, headers } = options;
    try {
      const input = writeInput(given);
      const isKeyed = kind === 'mutation' && !isSignIn({ path });
      const key = isKeyed ? validKey(idempotencyKey ?? newId()) : undefined;
      signal?.throwIfAborted();
      const begun = {
        ...{ path, kind, input, projectId, idempotencyKey: key, attempt: 0 },
        hooks: { onRequest, onResponse, onRetry },
        headers: validHeaders(headers),
        trace: traceHeaders(traceparent),
      };
      return await withTimeOut(options, begun, (call) =>
        withSignIn(session, call, () => (isSignIn(call) ? signInLine : line)(call)),
      );
    } catch (error) {
      signal?.throwIfAborted();
      throw withCallerStack(toDeckhandError(error), caller, path);
    }
  };

  const client = withDefaults(options, send, makeFollow(options, session));
  return client;
}

/** All calls of a batch have the same project. */
function projectHeader(first: Call | undefined): Record<string, string> {
  return first?.projectId === undefined ? {} : { 'x-project-id': String(first.projectId) };
}

/** Sets the request id here, so that the service's log can be searched for a call without a response. */
function requestIdHeader(calls: Call[]): Record<string, string> {
  const id = newId();
  for (const call of calls) call.requestId = id;
  return { 'x-request-id': id };
}
