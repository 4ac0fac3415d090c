import superjson from 'superjson';
import type { Call } from './call.ts';
import { DeckhandError, errorOf, ForeignAnswer, type RefusalData, readAnswer } from './errors.ts';
import type { Answered, Outcome } from './line.ts';
import type { Quota } from './pace.ts';

type Destination = { url: string; fetch: typeof fetch | undefined };

/** Sends calls of one kind as one batch of tRPC's protocol, always by POST: no input ends up in the log of a proxy. */
export async function sendRequest(
  { url, fetch: send = fetch }: Destination,
  calls: Call[],
  headers: () => Promise<Record<string, string>>,
  signal: AbortSignal,
): Promise<Answered> {
  const paths = calls.map(({ path }) => path).join();
  // The kind lets the service refuse a mutation that was called as a query: it would have no idempotency key.
  const address = `${url.replace(/\/+$/, '')}/trpc/${paths}?batch=1&kind=${calls[0]!.kind}`;
  const body = `{${calls.map(({ input }, index) => `"${index}":${input.text}`)}}`;
  try {
    const request = {
      method: 'POST',
      body,
      signal,
      headers: { 'content-type': 'application/json', ...(await headers()) },
    };
    const response = await send(address, request);
    const answer = await readAnswer(response);
    const outcomes = calls.map((call, index) =>
      outcomeOf(Array.isArray(answer) ? answer[index] : answer, response, call),
    );
    return { outcomes, quota: quotaIn(response) };
  } catch (thrown) {
    return { outcomes: calls.map((call) => ({ error: errorOf(thrown, call) })) };
  }
}

type Sent = Parameters<typeof superjson.deserialize>[0];
type SentOutcome = { result?: { data: Sent }; error?: Sent } | null | undefined;

function outcomeOf(sent: SentOutcome, response: Response, call: Call): Outcome {
  try {
    if (sent?.result) return { result: superjson.deserialize(sent.result.data) };
    const { message, data } = superjson.deserialize<{ message: string; data: RefusalData }>(sent!.error!);
    return { error: new DeckhandError(message, { response, data, call }) };
  } catch (error) {
    return { error: errorOf(new ForeignAnswer(response, error), call) };
  }
}

/** Undefined if a proxy left out the headers. */
function quotaIn({ headers }: Response): Quota | undefined {
  const [limit, remaining] = ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`));
  return limit && remaining ? { limit: Number(limit), remaining: Number(remaining) } : undefined;
}
