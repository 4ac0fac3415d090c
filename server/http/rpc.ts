import { getTRPCErrorFromUnknown, getTRPCErrorShape, transformTRPCResponse } from '@trpc/server';
import { fastifyRequestHandler } from '@trpc/server/adapters/fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { describe, tooManyRequests } from '../errors.ts';
import { makeAnswerRoom } from '../limits/answerRoom.ts';
import { appRouter } from '../routers/app.ts';
import type { Services } from '../services.ts';
import { acceptJson, asBadRequest, DEEPEST_BODY } from './body.ts';
import { contextOf, identifyCallers, sendRetryAfter } from './identify.ts';
import { logFailure } from './logFailure.ts';
import { refuseUnknownRoutes } from './unknownRoute.ts';

export const LARGEST_BATCH = 50;

/** What the protocol wraps around an input: the batch, its number, superjson's `json`. */
const ENVELOPE_LEVELS = 3;

/** The RPC surface: tRPC over POST alone, so that no input ends up in a URL, a log or a cache. */
export async function rpcSurface(scope: FastifyInstance, services: Services): Promise<void> {
  acceptJson(scope, DEEPEST_BODY + ENVELOPE_LEVELS, (text) => text);
  identifyCallers(scope, services, countCalls);
  refuseUnknownRoutes(scope, () => true);

  scope.setErrorHandler((thrown, request, reply) => {
    const error = getTRPCErrorFromUnknown(asBadRequest(thrown));
    const failure = describe(error);
    logFailure(request.log, thrown, failure);
    sendRetryAfter(reply, failure.retryAfterSeconds);
    return reply.code(failure.status).send(errorResponse(error));
  });

  scope.post('/*', { config: { surface: 'rpc' } }, (request, reply) => {
    // Both could ask tRPC to stream its answer, which then has status 200 whatever the calls answer.
    delete request.headers['trpc-accept'];
    delete request.headers.accept;
    return fastifyRequestHandler({
      router: appRouter,
      req: request,
      res: asText(reply),
      path: pathOf(request),
      allowMethodOverride: true,
      maxBatchSize: LARGEST_BATCH,
      createContext: () => ({
        ...contextOf(request, services),
        answerRoom: countCalls(request) > 1 ? makeAnswerRoom(batchTooLarge) : undefined,
      }),
      onError: ({ error }) => {
        logFailure(request.log, error, describe(error));
      },
      responseMeta: ({ errors }) => {
        for (const error of errors) sendRetryAfter(reply, describe(error).retryAfterSeconds);
        // tRPC sets no type where it refuses a whole batch.
        return { headers: { 'content-type': 'application/json' } };
      },
    });
  });
}

/** tRPC answers with a stream; as text it is sent at once, and its size is known. */
function asText(reply: FastifyReply): FastifyReply {
  const send = async (response: Response) =>
    reply
      .code(response.status)
      .headers(Object.fromEntries(response.headers))
      .send(await response.text());
  return Object.assign(Object.create(reply), { send });
}

const batchTooLarge = () => tooManyRequests('The answers of this batch are too large. Ask for the rest again.', 1);

const pathOf = (request: FastifyRequest) => (request.params as { '*': string })['*'];

/** A batch is one request of many calls, and each counts. */
function countCalls(request: FastifyRequest): number {
  const isBatch = (request.query as { batch?: unknown }).batch === '1';
  return isBatch ? (pathOf(request) ?? '').split(',').length : 1;
}

function errorResponse(error: ReturnType<typeof getTRPCErrorFromUnknown>): unknown {
  const config = appRouter._def._config;
  const shape = getTRPCErrorShape({
    config,
    error,
    type: 'unknown',
    path: undefined,
    input: undefined,
    ctx: undefined,
  });
  return transformTRPCResponse(config, { error: shape });
}
