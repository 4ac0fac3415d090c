import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, type Failure, invalid, JSON_WANTED, toFailure } from '../../shared/errors.ts';
import { callProcedure, restProcedures } from '../api/procedures.ts';
import { ERROR_BODIES, type ErrorStatus, errorBody, type RestOperation } from '../api/restOperation.ts';
import type { Services } from '../api/services.ts';
import { hasLargeField, writeFields, writeFieldsInPieces } from '../runtime/jsonText.ts';
import { acceptJson, asBadRequest, DEEPEST_BODY, parseJson } from './body.ts';
import { sendErrorHeaders } from './errorHeaders.ts';
import { sendReplayed } from './idempotencyKey.ts';
import { contextOf, identifyCallers } from './identify.ts';
import { sendInPieces } from './largeAnswer.ts';
import { logFailure } from './logFailure.ts';
import { operationOf } from './operation.ts';
import { projectionOf } from './projection.ts';
import { addRestStream, STREAM_PATH } from './restStream.ts';
import { readIfMatch, sendVersion } from './rowVersion.ts';
import { refuseUnknownRoutes } from './unknownRoute.ts';

/** The REST facade: a route for each procedure with a path. Responses are projections of the RPC results. */
export async function restFacade(scope: FastifyInstance, services: Services): Promise<void> {
  acceptJson(scope, DEEPEST_BODY, (text) => (text === '' ? undefined : parseJson(text)));
  identifyCallers(scope, services, (request) => [operationOf(request)]);
  refuseUnknownRoutes(scope, {
    isKnown: (path) => path === STREAM || restProcedures.some(({ rest }) => `/api${rest.path}` === path),
    methodsOf: (request) => (isStream(request) ? 'GET' : 'POST'),
    rule: (request) => (isStream(request) ? 'the stream of events is a GET' : 'every operation is a POST'),
  });
  scope.setErrorHandler((error, request, reply) => {
    const failure = toFailure(asBadRequest(error));
    logFailure(request.log, error, failure);
    return sendFailure(reply, failure, request.routeOptions.config.rest);
  });

  addRestStream(scope, services);
  for (const procedure of restProcedures) {
    const { name, output, rest, isConditional, isVersioned } = procedure;
    const toRest = projectionOf(output);
    const more = Object.entries(rest.envelope).map(
      ([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`,
    );
    const end = `${more.join('')}}`;

    scope.post(
      rest.path,
      {
        config: { surface: 'rest', operation: name, rest },
        // Before the body is read: 401 and 403 come before body errors.
        onRequest: (request, _reply, done) => done(request.access?.get(name)),
      },
      async (request, reply) => {
        const input = readInput(request, rest, procedure.needsInput);
        if (isConditional) {
          if (!rest.isSpecified && Object.hasOwn(input, 'if_version')) throw invalid({ if_version: SEND_IF_MATCH });
          input.if_version = readIfMatch(request);
        }
        const ctx = contextOf(request, services);
        const result = await callProcedure(procedure, ctx, input, request.callerSignal);
        sendReplayed(reply, ctx, 1);
        const message = JSON.stringify(rest.messageFor?.(result as never) ?? rest.message);
        const begin = `{"error":false,"message":${message},"data":`;
        reply.code(rest.status).header('content-type', 'application/json; charset=utf-8');
        if (result === undefined) return reply.send(`${begin}[]${end}`);
        const data = toRest(isVersioned ? sendVersion(reply, result as object) : result) as object;
        if (!hasLargeField(data)) return reply.send(`${begin}${writeFields(data)}${end}`);
        return sendInPieces(request, reply, [[begin], writeFieldsInPieces(data), [end]]);
      },
    );
  }
}

const SEND_IF_MATCH = 'is not a known field over REST: send If-Match';

const STREAM = `/api${STREAM_PATH}`;
const isStream = ({ url }: FastifyRequest) => url.split('?', 1)[0] === STREAM;

function readInput(request: FastifyRequest, rest: RestOperation, needsBody: boolean): Record<string, unknown> {
  const { body = needsBody ? undefined : {}, headers } = request;
  if (body === undefined || (needsBody && headers['content-type'] === undefined)) {
    throw badRequest(JSON_WANTED, 'body_not_json');
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw badRequest('The body must be a JSON object.', 'body_not_object');

  const fields = body as Record<string, unknown>;
  const query = request.query as Record<string, unknown>;
  for (const field of rest.query) if (field in query && !Object.hasOwn(fields, field)) fields[field] = query[field];
  return fields;
}

function sendFailure(reply: FastifyReply, failure: Failure, rest?: RestOperation): FastifyReply {
  const kind = (rest?.bodies ?? ERROR_BODIES)[failure.status as ErrorStatus] ?? 'full';
  sendErrorHeaders(reply, failure);
  return reply.code(failure.status).send(errorBody(kind, failure));
}
