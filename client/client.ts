import { createTRPCUntypedClient } from '@trpc/client';
import { httpBatchLink } from '@trpc/client/links/httpBatchLink';
import { splitLink } from '@trpc/client/links/splitLink';
import superjson from 'superjson';
import { LARGEST_BATCH } from '../shared/limits.ts';
import { type CallContext, contextOf } from './callContext.ts';
import type { CallDefaults } from './calls.ts';
import { errorOf, readableAnswer, thrownAt } from './errors.ts';
import { keyHeader, newName, validKey } from './idempotencyKey.ts';
import { batchingByProject, ending, isSignIn, retrying, signingIn, withOwnSignal } from './links.ts';
import { type Client, type Send, withDefaults } from './proxy.ts';
import { openSession, type SessionOptions } from './session.ts';
import { traceHeaders } from './trace.ts';

export type * from './calls.ts';
export { DeckhandError, isRefusal, type Refusal, type RefusalData } from './errors.ts';
export type * from './procedures.ts';
export type { Client } from './proxy.ts';
export type { Reason } from './reasons.ts';
export type { SessionOptions, SignedIn, SignIn } from './session.ts';

/** Where the service is, who calls, and what holds for all calls. */
export type ClientOptions = SessionOptions &
  CallDefaults & {
    /** Where the service listens, as in `http://127.0.0.1:3000`. */
    url: string;
    /** The maximum number of retries of a failed call that is safe to repeat; 3 by default. */
    retries?: number | undefined;
    /**
     * The W3C trace context to send with each request, such as `00-…-…-01`. Without it, that of the active span if OpenTelemetry
     * is loaded; with `() => undefined`, none.
     */
    traceparent?: (() => string | undefined) | undefined;
    /** Replaces the global `fetch`. */
    fetch?: typeof fetch | undefined;
  };

/** A typed client of every procedure: `client.cards.create.mutate({ title: 'First card' })`. Calls made at once are batched. */
export function createClient(options: ClientOptions): Client {
  const { retries = 3, traceparent } = options;
  const session = openSession(options, (input) => client.auth.authenticate.mutate(input));

  const sender = createTRPCUntypedClient({
    links: [
      ending(),
      signingIn(session),
      retrying(retries),
      splitLink({
        condition: isSignIn,
        true: httpBatchLink({
          ...requests(options),
          maxItems: 1,
          headers: ({ opList }) => ({ ...traceHeaders(traceparent), ...requestIdHeader(opList) }),
        }),
        false: batchingByProject((projectId) =>
          httpBatchLink({
            ...requests(options),
            maxItems: LARGEST_BATCH,
            headers: async ({ opList }) => {
              const token = await session.token();
              return {
                ...traceHeaders(traceparent),
                ...requestIdHeader(opList),
                ...(token && { authorization: `Bearer ${token}` }),
                ...(projectId !== undefined && { 'x-project-id': String(projectId) }),
                ...keyHeader(opList),
              };
            },
          }),
        ),
      }),
    ],
  });

  const send: Send = async ({ path, kind, input, options, caller }) => {
    const { signal, projectId, idempotencyKey } = options;
    try {
      const isKeyed = kind === 'mutation' && !isSignIn({ path });
      const context: CallContext = { projectId };
      if (isKeyed) context.idempotencyKey = validKey(idempotencyKey ?? newName());
      signal?.throwIfAborted();
      return await withOwnSignal(options, context, (own) => sender[kind](path, input, { signal: own, context }));
    } catch (error) {
      signal?.throwIfAborted();
      throw thrownAt(caller, errorOf(error));
    }
  };

  const client = withDefaults(options, send);
  return client;
}

/** Names the request of these calls, so that the log of the service can be searched for a call even if no answer came. */
function requestIdHeader(calls: readonly Parameters<typeof contextOf>[0][]): Record<string, string> {
  const id = newName();
  for (const call of calls) contextOf(call).requestId = id;
  return { 'x-request-id': id };
}

/** The service reads plain JSON, so equal references are not annotated: a shared object is sent twice. */
const transformer = {
  serialize: (input: unknown) => {
    const { json, meta: { referentialEqualities, ...meta } = {} } = superjson.serialize(input);
    return { json, ...(meta.values && { meta }) };
  },
  deserialize: (answer: Parameters<typeof superjson.deserialize>[0]) => superjson.deserialize(answer),
};

function requests({ url, fetch: send }: ClientOptions) {
  return {
    url: `${url.replace(/\/+$/, '')}/trpc`,
    transformer,
    methodOverride: 'POST' as const,
    fetch: async (address: unknown, request: unknown) =>
      readableAnswer(await (send ?? fetch)(address as string, request as RequestInit)),
  };
}
