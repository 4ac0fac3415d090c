import { createTRPCUntypedClient } from '@trpc/client';
import { httpBatchLink } from '@trpc/client/links/httpBatchLink';
import superjson from 'superjson';
import type { Call } from './call.ts';
import { requireJson, toDeckhandError } from './errors.ts';
import type { WrittenInput } from './input.ts';
import type { BatchResult, Outcome } from './line.ts';
import type { Quota } from './pace.ts';

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
  const batch = httpBatchLink({
    url: `${url.replace(/\/+$/, '')}/trpc`,
    maxItems: calls.length,
    methodOverride: 'POST',
    headers,
    transformer,
    fetch: async (address, request) => {
      // With the kind, a mutation called as a query is an error: it would have no idempotency key.
      response = await send(`${address}&kind=${kind}`, request as RequestInit);
      return requireJson(response);
    },
  });
  // A new client for each batch, or tRPC would merge batches.
  const client = createTRPCUntypedClient({ links: [batch] });
  const outcomes = calls.map((call) =>
    client[kind](call.path, call.input, { signal }).then(
      (result): Outcome => ({ result }),
      (thrown): Outcome => ({ error: toDeckhandError(thrown, call) }),
    ),
  );
  return { outcomes: await Promise.all(outcomes), quota: response && readQuota(response) };
}

/** Inputs are already serialized: the caller may have changed the object since the call. */
const transformer = {
  input: { serialize: ({ text }: WrittenInput) => JSON.parse(text), deserialize: superjson.deserialize },
  output: superjson,
};

/** Undefined if a proxy removed the headers. */
function readQuota({ headers }: Response): Quota | undefined {
  const [limit, remaining] = ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`));
  return limit && remaining ? { limit: Number(limit), remaining: Number(remaining) } : undefined;
}
