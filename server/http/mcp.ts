import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, type Failure, forbidden, JSON_WANTED } from '../../shared/errors.ts';
import { HIGHEST_ROLE } from '../../shared/user.ts';
import type { Services } from '../api/services.ts';
import type { Exchange } from '../call/answer.ts';
import { notSignedIn } from '../domain/access/access.ts';
import { DEEPEST_BODY, leaveBodies, parseJson, readBody } from './body.ts';
import { admitRequest, openExchanges, refuseRequest } from './exchange.ts';
import { sendErrorHeaders } from './headers.ts';
import { isForeign } from './origins.ts';
import { metadataAddress } from './resourceMetadata.ts';
import { refuseUnknownRoutes } from './unknownRoute.ts';

/** The levels around an input: the message, its parameters, and the arguments of `operations_call`. */
const ENVELOPE_LEVELS = 3;

/**
 * The surface for assistants: the Model Context Protocol over stateless HTTP. A request is one JSON-RPC message, so there are no
 * sessions and no streams: only POST. Calls go through the same steps as those of REST and RPC.
 */
export async function mcpSurface(scope: FastifyInstance, services: Services): Promise<void> {
  leaveBodies(scope);
  scope.decorateRequest('operation', undefined);
  // The body names the procedure: one request is one call.
  openExchanges(scope, services, () => ['mcp'], HIGHEST_ROLE);
  refuseUnknownRoutes(scope, {
    isKnown: (path) => path === '/mcp',
    methodsOf: () => 'POST',
    rule: () => 'every message is a POST',
  });
  const ownAddress = () => services.publicUrl ?? scope.ownOrigin;

  scope.setErrorHandler((error, request, reply) => {
    const failure = refuseRequest(request, error);
    if (failure.status === 401) reply.header('WWW-Authenticate', challengeOf(request, ownAddress()));
    return sendError(reply, failure);
  });

  scope.post(
    '/',
    { prefixTrailingSlash: 'no-slash', config: { surface: 'mcp' } },
    async (request: FastifyRequest, reply: FastifyReply) => {
      const exchange = await admitRequest(request);
      if (isForeign(request, reply, new URL(ownAddress()).origin)) throw forbidden(FOREIGN, 'origin_not_allowed');
      mustBeSignedIn(exchange);
      const text = await readBody(request, reply, DEEPEST_BODY + ENVELOPE_LEVELS);
      // Again: the key may have ended while the body was sent.
      mustBeSignedIn(exchange);
      if (text === '') throw badRequest(JSON_WANTED, 'body_not_json');
      const body = parseJson(text);
      if (Array.isArray(body)) throw badRequest('Send one message for each request.', 'batch_invalid');
      // Loaded with the first message: most services have no assistants, and the start takes no longer.
      const { answerMessage } = await import('./mcpMessage.ts');
      const response = await answerMessage(request, reply, exchange, body);
      reply.code(response.status);
      const type = response.headers.get('content-type');
      if (type) reply.header('Content-Type', type);
      return reply.send(await response.text());
    },
  );
}

/** For every message: tools depend on the caller. */
function mustBeSignedIn({ caller, unidentified }: Exchange): void {
  if (!caller) throw unidentified ?? notSignedIn();
}

const FOREIGN = 'Pages of this origin may not call the service: add it to ALLOWED_ORIGINS.';

/** Where a client finds out how to sign in. */
function challengeOf({ headers }: FastifyRequest, origin: string): string {
  const wrong = headers.authorization === undefined ? '' : 'error="invalid_token", ';
  return `Bearer ${wrong}resource_metadata="${metadataAddress(origin)}"`;
}

/** An error of the request itself; refused calls are results of their tools. */
function sendError(reply: FastifyReply, failure: Failure): FastifyReply {
  const { status, reason, message } = failure;
  sendErrorHeaders(reply, failure);
  const error = { code: codeOf(failure), message, data: { status, reason } };
  return reply.code(status).send({ jsonrpc: '2.0', id: null, error });
}

/** The codes of JSON-RPC, and -32000 for what it has none for. */
function codeOf({ status, reason }: Failure): number {
  if (reason === 'body_not_json') return -32700;
  if (status === 500) return -32603;
  return status === 400 ? -32600 : -32000;
}
