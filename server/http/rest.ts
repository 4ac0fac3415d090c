import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, type Failure, invalid, JSON_WANTED } from '../../shared/errors.ts';
import { type RestProcedure, restProcedures } from '../api/procedures.ts';
import { ERROR_BODIES, type ErrorStatus, errorBody, type RestOperation } from '../api/restOperation.ts';
import type { Services } from '../api/services.ts';
import { answer } from '../call/answer.ts';
import { hasLargeField, writeFields, writeFieldsInPieces } from '../runtime/jsonText.ts';
import { DEEPEST_BODY, leaveBodies, parseJson, readBody } from './body.ts';
import { admitRequest, keysOf, openExchanges, refuseRequest, sendReplayed } from './exchange.ts';
import { sendErrorHeaders } from './headers.ts';
import { sendInPieces } from './largeAnswer.ts';
import { operationOf } from './observe.ts';
import { projectionOf } from './projection.ts';
import { addRestStream, STREAM_PATH } from './restStream.ts';
import { refuseUnknownRoutes } from './unknownRoute.ts';

/** The REST facade: a route for each procedure with a path. Responses are projections of the RPC results. */
export async function restFacade(scope: FastifyInstance, services: Services): Promise<void> {
  leaveBodies(scope);
  openExchanges(scope, services, (request) => [operationOf(request)]);
  refuseUnknownRoutes(scope, {
    isKnown: (path) => path === STREAM || restProcedures.some(({ rest }) => `/api${rest.path}` === path),
    methodsOf: (request) => (isStream(request) ? 'GET' : 'POST'),
    rule: (request) => (isStream(request) ? 'the stream of events is a GET' : 'every operation is a POST'),
  });
  scope.setErrorHandler((error, request, reply) => {
    const failure = refuseRequest(request, error);
    return sendFailure(reply, failure, request.routeOptions.config.rest);
  });

  addRestStream(scope, sendFailure);
  for (const procedure of restProcedures) {
    const { name, output, rest, isVersioned } = procedure;
    const toRest = projectionOf(output);
    const more = Object.entries(rest.envelope).map(
      ([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`,
    );
    const end = `${more.join('')}}`;

    scope.post(rest.path, { config: { surface: 'rest', operation: name, rest } }, async (request, reply) => {
      const exchange = await admitRequest(request);
      const [key] = keysOf(request);
      const readInput = () => inputOf(request, reply, procedure);
      const answered = await answer(exchange, { procedure, index: 0, readInput, key });
      if ('failure' in answered) return sendFailure(reply, answered.failure, rest);

      const { data: result, isReplayed } = answered;
      sendReplayed(reply, isReplayed ? [0] : [], 1);
      const message = JSON.stringify(rest.messageFor?.(result as never) ?? rest.message);
      const begin = `{"error":false,"message":${message},"data":`;
      reply.code(rest.status).header('content-type', 'application/json; charset=utf-8');
      if (result === undefined) return reply.send(`${begin}[]${end}`);
      const data = toRest(isVersioned ? sendVersion(reply, result as object) : result) as object;
      if (!hasLargeField(data)) return reply.send(`${begin}${writeFields(data)}${end}`);
      return sendInPieces(request, reply, [[begin], writeFieldsInPieces(data), [end]]);
    });
  }
}

const SEND_IF_MATCH = 'is not a known field over REST: send If-Match';

const STREAM = `/api${STREAM_PATH}`;
const isStream = ({ url }: FastifyRequest) => url.split('?', 1)[0] === STREAM;

/** The body, with fields of the query string where these are specified, and the version of `If-Match`. */
async function inputOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { rest, needsInput, isConditional }: RestProcedure,
): Promise<Record<string, unknown>> {
  const text = await readBody(request, reply, DEEPEST_BODY);
  const body = text === '' ? (needsInput ? undefined : {}) : parseJson(text);
  if (body === undefined || (needsInput && request.sentBody.type === undefined))
    throw badRequest(JSON_WANTED, 'body_not_json');
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw badRequest('The body must be a JSON object.', 'body_not_object');

  const fields = body as Record<string, unknown>;
  const query = request.query as Record<string, unknown>;
  for (const field of rest.query) if (field in query && !Object.hasOwn(fields, field)) fields[field] = query[field];
  if (isConditional) {
    if (!rest.isSpecified && Object.hasOwn(fields, 'if_version')) throw invalid({ if_version: SEND_IF_MATCH });
    fields.if_version = readIfMatch(request);
  }
  return fields;
}

function sendFailure(reply: FastifyReply, failure: Failure, rest?: RestOperation): FastifyReply {
  const kind = (rest?.bodies ?? ERROR_BODIES)[failure.status as ErrorStatus] ?? 'full';
  sendErrorHeaders(reply, failure);
  return reply.code(failure.status).send(errorBody(kind, failure));
}

const TAG = /(W\/)?"([^"]*)"/g;

/**
 * The versions in the header `If-Match`, for the field `if_version`: several have commas between them. Undefined without the
 * header and for `*`, since a row that does not exist is a 404 anyway. A weak tag never matches, nor does one of another service.
 */
function readIfMatch({ headers }: FastifyRequest): string | undefined {
  const header = headers['if-match']?.trim();
  if (header === undefined || header === '*') return undefined;
  const tags = [...header.matchAll(TAG)];
  if (tags.length === 0 || !/^[\s,]*$/.test(header.replaceAll(TAG, '')))
    throw badRequest('If-Match must be an ETag in double quotes, a list of them, or *.', 'if_match_invalid');
  const versions = tags.flatMap(([, weak, version = '']) => (weak || !/^\d+-\d+$/.test(version) ? [] : version));
  return versions.join() || NO_VERSION;
}

/** What no row has. */
const NO_VERSION = 'none';

/** Sends the version of an answer as its `ETag`, and returns the rest of the answer. */
function sendVersion(reply: FastifyReply, answer: object): object {
  const { version, ...rest } = answer as { version?: string };
  // The answer of an earlier call may have been stored before there were versions.
  if (version !== undefined) reply.header('ETag', `"${version}"`);
  return rest;
}
