import { createTRPCUntypedClient } from '@trpc/client';
import { httpBatchLink } from '@trpc/client/links/httpBatchLink';
import superjson from 'superjson';
import type { Call } from './call.ts';
import { errorOf, readableAnswer } from './errors.ts';
import type { WrittenInput } from './input.ts';
import type { Answered, Outcome } from './line.ts';
import type { Quota } from './pace.ts';

type Destination = { url: string; fetch: typeof fetch | undefined };

/** Sends calls of one kind as one batch, always by POST: no input ends up in the log of a proxy. */
export async function sendRequest(
  { url, fetch: send = fetch }: Destination,
  calls: Call[],
  headers: () => Promise<Record<string, string>>,
  signal: AbortSignal,
): Promise<Answered> {
  const { kind } = calls[0]!;
  let response: Response | undefined;
  const batch = httpBatchLink({
    url: `${url.replace(/\/+$/, '')}/trpc`,
    maxItems: calls.length,
    methodOverride: 'POST',
    headers,
    transformer,
    fetch: async (address, request) => {
      // The kind lets the service refuse a mutation that was called as a query: it would have no idempotency key.
      response = await send(`${address}&kind=${kind}`, request as RequestInit);
      return readableAnswer(response);
    },
  });
  // A client for each request: tRPC would put calls of several requests into one.
  const client = createTRPCUntypedClient({ links: [batch] });
  const outcomes = calls.map((call) =>
    client[kind](call.path, call.input, { signal }).then(
      (result): Outcome => ({ result }),
      (thrown): Outcome => ({ error: errorOf(thrown, call) }),
    ),
  );
  return { outcomes: await Promise.all(outcomes), quota: response && quotaIn(response) };
}

/** Inputs are written when a call is made; the caller may have changed the object since. */
const transformer = {
  input: { serialize: ({ text }: WrittenInput) => JSON.parse(text), deserialize: superjson.deserialize },
  output: superjson,
};

/** Undefined if a proxy left out the headers. */
function quotaIn({ headers }: Response): Quota | undefined {
  const [limit, remaining] = ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`));
  return limit && remaining ? { limit: Number(limit), remaining: Number(remaining) } : undefined;
}
