import { LARGEST_BATCH } from '../shared/limits.ts';
import { type Call, isSignIn } from './call.ts';
import { errorOf, thrownAt } from './errors.ts';
import { keyHeader, newName, validKey } from './idempotencyKey.ts';
import { writeInput } from './input.ts';
import { makeLine } from './line.ts';
import { type ClientOptions, mustBeValid } from './options.ts';
import { type Client, type Send, withDefaults } from './proxy.ts';
import { sendRequest } from './request.ts';
import { openSession, signedIn } from './session.ts';
import { withTimeOut } from './timeOut.ts';
import { traceHeaders } from './trace.ts';

export type * from './calls.ts';
export { DeckhandError, isRefusal, type Refusal, type RefusalData } from './errors.ts';
export type { ClientOptions } from './options.ts';
export type * from './procedures.ts';
export type { Client } from './proxy.ts';
export type { Reason } from './reasons.ts';
export type { SessionOptions, SignedIn, SignIn } from './session.ts';

/** A typed client of every procedure: `client.cards.create.mutate({ title: 'First card' })`. Calls made at once are batched. */
export function createClient(options: ClientOptions): Client {
  mustBeValid(options);
  const { url, fetch, retries = 3, maxInFlight = 100, traceparent } = options;
  const session = openSession(options, (input) => client.auth.authenticate.mutate(input));

  const lineOf = (largestBatch: number, tokenOf: () => Promise<string | undefined>) =>
    makeLine({
      largestBatch,
      maxInFlight,
      retries,
      send: (calls, signal) => {
        const headers = async () => {
          const token = await tokenOf();
          return {
            ...calls[0]!.trace,
            ...(token && { authorization: `Bearer ${token}` }),
            ...projectHeader(calls),
            ...keyHeader(calls),
            ...requestIdHeader(calls),
          };
        };
        return sendRequest({ url, fetch }, calls, headers, signal);
      },
    });
  const line = lineOf(LARGEST_BATCH, session.token);
  // Has no token, and a line of its own: calls that wait for the sign-in would deadlock.
  const signInLine = lineOf(1, async () => undefined);

  const send: Send = async ({ path, kind, input: given, options, caller }) => {
    const { signal, projectId, idempotencyKey } = options;
    try {
      const input = writeInput(given);
      const isKeyed = kind === 'mutation' && !isSignIn({ path });
      const key = isKeyed ? validKey(idempotencyKey ?? newName()) : undefined;
      signal?.throwIfAborted();
      const trace = traceHeaders(traceparent);
      return await withTimeOut(options, { path, kind, input, projectId, idempotencyKey: key, trace }, (call) =>
        signedIn(session, call, () => (isSignIn(call) ? signInLine : line)(call)),
      );
    } catch (error) {
      signal?.throwIfAborted();
      throw thrownAt(caller, errorOf(error));
    }
  };

  const client = withDefaults(options, send);
  return client;
}

/** The calls of a request have the same project. */
function projectHeader([first]: Call[]): Record<string, string> {
  const { projectId } = first!;
  return projectId === undefined ? {} : { 'x-project-id': String(projectId) };
}

/** Names the request of these calls, so that the log of the service can be searched for a call even if no answer came. */
function requestIdHeader(calls: Call[]): Record<string, string> {
  const id = newName();
  for (const call of calls) call.requestId = id;
  return { 'x-request-id': id };
}
