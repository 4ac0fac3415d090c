import { resolveResponse } from '@trpc/server/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { toFailure } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import { appRouter } from '../api/routers/app.ts';
import type { Context } from '../domain/access/context.ts';
import { logFailure } from './logFailure.ts';

/** Whether the caller reads each result of a batch as soon as it is there, as `httpBatchStreamLink` does. */
export const asksForStream = ({ headers }: FastifyRequest) =>
  headers['trpc-accept'] === JSON_LINES || (headers.accept ?? '').split(',').some((type) => type.trim() === JSON_LINES);

const JSON_LINES = 'application/jsonl';

/** Streams the results of a batch with tRPC's own adapter. Who calls, how often and with which input is checked before. */
export async function streamCalls(
  request: FastifyRequest,
  reply: FastifyReply,
  calls: { names: string[]; input: (index: number) => unknown; context: Context },
): Promise<FastifyReply> {
  const { names, input, context } = calls;
  const reasons: Reason[] = [];
  request.reasons = reasons;
  request.isStreamed = true;
  const response = await resolveResponse({
    router: appRouter,
    req: requestFor(request.callerSignal, () => names.map((_, index) => ({ json: input(index) }))),
    path: encodeURIComponent(names.join()),
    error: null,
    createContext: async () => context,
    allowMethodOverride: true,
    onError: ({ error }) => {
      const failure = toFailure(error);
      logFailure(request.log, error, failure);
      reasons.push(failure.reason);
    },
  });
  return reply
    .code(response.status)
    .type(response.headers.get('content-type') ?? '')
    .send(response.body);
}

/** What tRPC's adapter reads of a request. The inputs are those of our own reader, which limits and checks them. */
function requestFor(signal: AbortSignal | undefined, inputs: () => unknown[]): Request {
  const headers = { 'content-type': 'application/json', 'trpc-accept': JSON_LINES };
  const request = new Request('http://localhost/?batch=1', { method: 'POST', headers, signal: signal ?? null });
  return Object.assign(request, { json: async () => ({ ...inputs() }) });
}
