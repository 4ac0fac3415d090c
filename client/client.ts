import { createTRPCUntypedClient } from '@trpc/client';
import { httpBatchLink } from '@trpc/client/links/httpBatchLink';
import { splitLink } from '@trpc/client/links/splitLink';
import superjson from 'superjson';
import { LARGEST_BATCH } from '../shared/limits.ts';
import type { MutationOptions } from './calls.ts';
import { errorOf, readableAnswer } from './errors.ts';
import { keyHeader, newKey, validKey } from './idempotencyKey.ts';
import { ending, isSignIn, retrying, signingIn, withOwnSignal } from './links.ts';
import type { Procedures } from './procedures.ts';
import { openSession, type SessionOptions } from './session.ts';
import { traceHeaders } from './trace.ts';

export type * from './calls.ts';
export { DeckhandError, isRefusal, type Refusal, type RefusalData } from './errors.ts';
export type * from './procedures.ts';
export type { Reason } from './reasons.ts';
export type { SessionOptions, SignedIn, SignIn } from './session.ts';

export type ClientOptions = SessionOptions & {
  /** Where the service listens, as in `http://127.0.0.1:3000`. */
  url: string;
  /** The project to act in; without it, the user's default project. */
  projectId?: number | undefined;
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

export type Client = Procedures;

/** A typed client of every procedure: `client.cards.create.mutate({ title: 'First card' })`. Calls made at once are batched. */
export function createClient(options: ClientOptions): Client {
  const { projectId, retries = 3, traceparent } = options;
  const session = openSession(options, (input) => client.auth.authenticate.mutate(input));

  const sender = createTRPCUntypedClient({
    links: [
      ending(),
      signingIn(session),
      retrying(retries),
      splitLink({
        condition: isSignIn,
        true: httpBatchLink({ ...requests(options), maxItems: 1, headers: () => traceHeaders(traceparent) }),
        false: httpBatchLink({
          ...requests(options),
          maxItems: LARGEST_BATCH,
          headers: ({ opList }) => {
            const token = session.token();
            return {
              ...traceHeaders(traceparent),
              ...(token && { authorization: `Bearer ${token}` }),
              ...(projectId !== undefined && { 'x-project-id': String(projectId) }),
              ...keyHeader(opList),
            };
          },
        }),
      }),
    ],
  });

  const client = procedureAt([], async (path, kind, input, { signal, idempotencyKey } = {}) => {
    try {
      const isKeyed = kind === 'mutation' && !isSignIn({ path });
      const context = isKeyed ? { idempotencyKey: validKey(idempotencyKey ?? newKey()) } : {};
      signal?.throwIfAborted();
      return await withOwnSignal(signal, (own) => sender[kind](path, input, { signal: own, context }));
    } catch (error) {
      signal?.throwIfAborted();
      throw errorOf(error);
    }
  }) as Client;
  return client;
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

type Send = (path: string, kind: 'query' | 'mutation', input: unknown, options?: MutationOptions) => Promise<unknown>;

/** `client.cards.create.mutate(input)` sends `cards.create`: each property access adds a part to the path. */
function procedureAt(path: string[], send: Send): unknown {
  return new Proxy(() => undefined, {
    get: (_, name) => (typeof name === 'symbol' || NO_PARTS.has(name) ? undefined : procedureAt([...path, name], send)),
    apply: (_, __, [input, options]: [unknown, MutationOptions?]) =>
      send(path.slice(0, -1).join('.'), path.at(-1) === 'query' ? 'query' : 'mutation', input, options),
  });
}

/** Properties that JavaScript reads when a value is awaited or printed as JSON; they are not procedures. */
const NO_PARTS = new Set(['then', 'toJSON']);
