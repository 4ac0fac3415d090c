import { resolveResponse } from '@trpc/server/http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { appRouter } from '../api/routers/app.ts';
import type { StreamedCalls } from '../api/trpc.ts';
import { noteRefused, type Reply } from '../call/answer.ts';
import { JSON_LINES } from './streamAsked.ts';

/** Streams the results of a batch with tRPC's own adapter, which gets each of them from `answer`. */
export async function streamCalls(
  request: FastifyRequest,
  reply: FastifyReply,
  calls: { names: string[]; answer: (index: number) => Promise<Reply> },
): Promise<FastifyReply> {
  const { names, answer } = calls;
  const refused = new WeakSet<object>();
  const context: StreamedCalls = {
    answer: async (index) => {
      const reply = await answer(index);
      if ('data' in reply) return reply.data;
      refused.add(reply.error as object);
      throw reply.error;
    },
  };
  const response = await resolveResponse({
    router: appRouter,
    req: requestFor(request.exchange?.leaving?.signal, names.length),
    path: encodeURIComponent(names.join()),
    error: null,
    createContext: async () => context as never,
    allowMethodOverride: true,
    onError: ({ error }) => {
      // What `answer` has refused is logged and counted.
      if (refused.has(error) || (error.cause && refused.has(error.cause))) return;
      if (request.exchange) noteRefused(request.exchange, error);
    },
  });
  return reply
    .code(response.status)
    .type(response.headers.get('content-type') ?? '')
    .send(response.body);
}

/** What tRPC's adapter reads of a request. It never sees the inputs. */
function requestFor(signal: AbortSignal | undefined, calls: number): Request {
  const headers = { 'content-type': 'application/json', 'trpc-accept': JSON_LINES };
  const request = new Request('http://localhost/?batch=1', { method: 'POST', headers, signal: signal ?? null });
  return Object.assign(request, { json: async () => ({ ...Array(calls).fill({ json: {} }) }) });
}
