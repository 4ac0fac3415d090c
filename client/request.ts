import { createTRPCUntypedClient } from '@trpc/client';
import { httpBatchLink } from '@trpc/client/links/httpBatchLink';
import superjson from 'superjson';
import type { Call } from './call.ts';
import type { CallMeta, Quota } from './calls.ts';
import { NOT_FOLLOWED, requireJson, toDeckhandError } from './errors.ts';
import { beginAttempt } from './hooks.ts';
import type { WrittenInput } from './input.ts';
import type { BatchResult, Outcome } from './line.ts';

type Destination = { url: string; fetch: typeof fetch | undefined };

/** Sends calls of one kind as one batch. Always by POST, since proxies log the inputs in URLs. */
export async function sendRequest(
  { url, fetch: send = fetch }: Destination,
  calls: Call[],
  headers: () => Promise<Record<string, string>>,
  signal: AbortSignal,
): Promise<BatchResult> {
  const [first] = calls;
  if (!first) return { outcomes: [] };

  const { kind } = first;
  let response: Response | undefined;
  let endAttempt: ReturnType<typeof beginAttempt> | undefined;
  const batch = httpBatchLink({
    url: `${url.replace(/\/+$/, '')}/trpc`,
    maxItems: calls.length,
    methodOverride: 'POST',
    headers,
    transformer,
    fetch: async (address, request) => {
      endAttempt = beginAttempt(...calls);
      // With the kind, a mutation called as a query is an error: it would have no idempotency key.
      response = await send(`${address}&kind=${kind}`, { ...(request as RequestInit), redirect: NOT_FOLLOWED });
      return requireJson(response);
    },
  });
  // A new client for each batch, or tRPC would merge batches.
  const client = createTRPCUntypedClient({ links: [batch] });
  const outcomes = calls.map((call, index) =>
    client[kind](call.path, call.input, { signal }).then(
      (data): Outcome => {
        endAttempt?.(call);
        return { result: { data, meta: metaOf(call, index, response) } };
      },
      (thrown): Outcome => {
        const error = toDeckhandError(thrown, call);
        endAttempt?.(call, error);
        return { error };
      },
    ),
  );
  return { outcomes: await Promise.all(outcomes), quota: readQuota(response) };
}

/** The header has `true`, or the batch indexes of the replayed calls. */
function metaOf({ requestId = '', attempt }: Call, index: number, response: Response | undefined): CallMeta {
  const replayed = response?.headers.get('idempotent-replayed')?.split(',') ?? [];
  return {
    requestId: response?.headers.get('x-request-id') ?? requestId,
    replayed: replayed.includes('true') || replayed.includes(String(index)),
    attempts: attempt,
    quota: readQuota(response),
  };
}

/** Inputs are already serialized: the caller may have changed the object since the call. */
const transformer = {
  input: { serialize: ({ text }: WrittenInput) => JSON.parse(text), deserialize: superjson.deserialize },
  output: superjson,
};

/** Undefined if a proxy removed the headers. */
function readQuota(response: Response | undefined): Quota | undefined {
  const [limit, remaining] = ['limit', 'remaining'].map((name) => response?.headers.get(`x-ratelimit-${name}`));
  return limit && remaining ? { limit: Number(limit), remaining: Number(remaining) } : undefined;
}
