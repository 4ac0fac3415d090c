import { getTRPCErrorFromUnknown, getTRPCErrorShape, transformTRPCResponse } from '@trpc/server';
import { fastifyRequestHandler } from '@trpc/server/adapters/fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { describe } from '../errors.ts';
import { appRouter } from '../routers/app.ts';
import type { Services } from '../services.ts';
import { acceptJson, asBadRequest, DEEPEST_BODY } from './body.ts';
import { contextOf, identifyCallers, sendRetryAfter } from './identify.ts';
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
    if (failure.status === 500) request.log.error(thrown);
    sendRetryAfter(reply, failure.retryAfterSeconds);
    return reply.code(failure.status).send(errorResponse(error));
  });

  scope.post('/*', { config: { surface: 'rpc' } }, (request, reply) =>
    fastifyRequestHandler({
      router: appRouter,
      req: request,
      res: reply,
      path: pathOf(request),
      allowMethodOverride: true,
      maxBatchSize: LARGEST_BATCH,
      createContext: () => contextOf(request, services),
      onError: ({ error }) => {
        if (describe(error).status === 500) request.log.error(error.cause ?? error);
      },
      responseMeta: ({ errors }) => {
        for (const error of errors) sendRetryAfter(reply, describe(error).retryAfterSeconds);
        return {};
      },
    }),
  );
}

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
