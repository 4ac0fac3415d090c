import {
  callTRPCProcedure,
  getTRPCErrorFromUnknown,
  getTRPCErrorShape,
  type TRPCError,
  transformTRPCResponse,
} from '@trpc/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, JSON_WANTED, notFound, toFailure } from '../../shared/errors.ts';
import { LARGEST_BATCH } from '../../shared/limits.ts';
import type { Reason } from '../../shared/reasons.ts';
import { findProcedure, type Procedure } from '../api/procedures.ts';
import { appRouter } from '../api/routers/app.ts';
import { transformer } from '../api/rpcInput.ts';
import type { Services } from '../api/services.ts';
import type { Context } from '../domain/access/context.ts';
import { hasLargeField } from '../runtime/jsonText.ts';
import { trace } from '../runtime/tracing.ts';
import { acceptJson, asBadRequest, DEEPEST_BODY, mustBeParsable, parseJson } from './body.ts';
import { sendRetryAfter } from './errorHeaders.ts';
import { sendReplayed } from './idempotencyKey.ts';
import { contextOf, identifyCallers } from './identify.ts';
import { sendInPieces } from './largeAnswer.ts';
import { logFailure } from './logFailure.ts';
import { writeSuperjson, writeSuperjsonInPieces } from './rpcOutput.ts';
import { asksForStream, streamCalls } from './rpcStream.ts';
import { asksForEvents, isSubscription, sendErrorMessage, sendSubscription } from './rpcSubscription.ts';
import { refuseMethod, refuseUnknownRoutes } from './unknownRoute.ts';

/** The levels around an input: the batch, its index, and superjson's `json`. */
const ENVELOPE_LEVELS = 3;

/**
 * The RPC surface for `@trpc/client`: queries with GET or POST, mutations only with POST. Procedures are called directly, unless
 * the caller asks for a stream: tRPC's own adapter takes three times as long.
 */
export async function rpcSurface(scope: FastifyInstance, services: Services): Promise<void> {
  acceptJson(scope, DEEPEST_BODY + ENVELOPE_LEVELS, (text) => text);
  identifyCallers(scope, services, namesOf);
  refuseUnknownRoutes(scope, SURFACE);

  scope.setErrorHandler((thrown, request, reply) => {
    const error = getTRPCErrorFromUnknown(asBadRequest(thrown));
    const failure = toFailure(error);
    logFailure(request.log, thrown, failure);
    request.reasons = [failure.reason];
    sendRetryAfter(reply, failure.retryAfterSeconds);
    const names = namesOf(request);
    if (asksForEvents(request, names)) return sendErrorMessage(reply, writeError(error, names[0]));
    return reply.code(failure.status).send(errorResponse(error));
  });

  const options = { exposeHeadRoute: false, config: { surface: 'rpc' as const } };
  scope.route({ method: ['GET', 'POST'], url: '/*', ...options, handler: respond });

  async function respond(request: FastifyRequest, reply: FastifyReply) {
    const names = namesOf(request);
    const kind = kindOf(request);
    const isStreamed = isBatch(request) && asksForStream(request);
    mustBeValidBatch(names, isStreamed ? undefined : kind);
    mustNotBatchStreams(request, names);
    if (!methodsOf(request).includes(request.method)) throw refuseMethod(request, reply, SURFACE);
    const inputs = inputsOf(request);
    if (names.some(isSubscription))
      return sendSubscription(request, reply, services, inputs(0), (error) => writeError(error, names[0]));
    const context = contextOf(request, services, isBatch(request) ? names.length : undefined);
    if (isStreamed) return streamCalls(request, reply, { names, input: inputs, context });

    const responses = await Promise.all(
      names.map((name, index) =>
        traceCall(name, () =>
          call({
            path: name,
            kind,
            input: () => inputs(index),
            batchIndex: index,
            ctx: context,
            signal: request.callerSignal,
          }),
        ),
      ),
    );
    request.reasons = responses.flatMap(({ reason }) => reason ?? []);
    for (const { retryAfterSeconds } of responses) sendRetryAfter(reply, retryAfterSeconds);
    sendReplayed(reply, context, names.length);
    const [status = MULTI_STATUS, other] = new Set(responses.map(({ status }) => status));
    reply.code(other === undefined ? status : MULTI_STATUS).header('content-type', 'application/json; charset=utf-8');
    const texts = responses.map(({ text }) => text);
    const [begin, end] = isBatch(request) ? ['[', ']'] : ['', ''];
    if (texts.every((text) => typeof text === 'string')) return reply.send(`${begin}${texts.join()}${end}`);
    const parts = texts.flatMap((text, at) => [[at === 0 ? begin : ','], typeof text === 'string' ? [text] : text]);
    return sendInPieces(request, reply, [...parts, [end]]);
  }
}

const MULTI_STATUS = 207;

type CallResponse = {
  status: number;
  text: string | Iterable<string>;
  reason?: Reason;
  retryAfterSeconds?: number | undefined;
};

type Called = {
  path: string;
  kind: string | undefined;
  input: () => unknown;
  batchIndex: number;
  ctx: Context;
  signal: AbortSignal | undefined;
};

/** What our client called it as. Other clients do not tell: a query by POST looks like a mutation. */
const kindOf = (request: FastifyRequest) => (request.query as { kind?: string }).kind;

/** A mutation that was called as a query would have no idempotency key, and be executed again by a retry. */
const wrongKind = ({ name, type }: Procedure) =>
  badRequest(`${name} is a ${type}: call it with ${METHODS[type]}.`, 'wrong_kind');
const METHODS = { query: 'query', mutation: 'mutate', subscription: 'for await' };

/** A span for each call of a batch; an unknown name is up to the caller, so it is not the name of the span. */
function traceCall(path: string, work: () => Promise<CallResponse>): Promise<CallResponse> {
  return trace(findProcedure(path) ? path : 'unknown procedure', async (span) => {
    const response = await work();
    span?.set({ 'deckhand.status': response.status, ...(response.reason && { 'deckhand.reason': response.reason }) });
    if (response.status >= 500) span?.fail(String(response.status));
    return response;
  });
}

async function call({ path, kind, input, ...options }: Called): Promise<CallResponse> {
  try {
    const procedure = findProcedure(path);
    if (!procedure) throw notFound(`No procedure found on path "${path}"`, 'unknown_procedure');
    if (kind !== undefined && kind !== procedure.type) throw wrongKind(procedure);
    let read: Promise<unknown> | undefined;
    const getRawInput = async () => {
      read ??= (async () => input())();
      return read;
    };
    const result = await callTRPCProcedure({ router: appRouter, path, type: procedure.type, getRawInput, ...options });
    return { status: 200, text: writeResult(result) };
  } catch (thrown) {
    const error = getTRPCErrorFromUnknown(thrown);
    const failure = toFailure(error);
    logFailure(options.ctx.log, error, failure);
    return { ...failure, text: JSON.stringify(errorResponse(error, path)) };
  }
}

/** Large results in pieces. */
function writeResult(result: unknown): string | Iterable<string> {
  const isLarge = typeof result === 'object' && result !== null && hasLargeField(result);
  return isLarge ? writeLargeResult(result) : `{"result":{"data":${writeSuperjson(result)}}}`;
}

function* writeLargeResult(result: object): Generator<string> {
  yield '{"result":{"data":';
  yield* writeSuperjsonInPieces(result);
  yield '}}';
}

/** The input of each call by its index in the batch. Parsed on first use, after the access check. */
function inputsOf(request: FastifyRequest): (index: number) => unknown {
  const isGet = request.method === 'GET';
  const needsInput = namesOf(request).map((name) => findProcedure(name)?.needsInput ?? true);
  if (!isGet && needsInput.includes(true) && request.headers['content-type'] === undefined)
    throw badRequest(JSON_WANTED, 'body_not_json');
  let inputs: Record<number, unknown> | undefined;
  return (index) => {
    inputs ??= isGet ? inputsOfQuery(request) : inputsIn((request.body as string | undefined) ?? '', request, 'body');
    const input = inputs[index] === undefined ? undefined : transformer.input.deserialize(inputs[index]);
    return input ?? (needsInput[index] ? input : {});
  };
}

/** The parameter `input` of a GET, with the limits of a body. */
function inputsOfQuery(request: FastifyRequest): Record<number, unknown> {
  const { input = '' } = request.query as { input?: string | string[] };
  if (typeof input !== 'string') throw badRequest('Send the parameter input once.', 'body_not_json');
  mustBeParsable(Buffer.from(input), DEEPEST_BODY + ENVELOPE_LEVELS, 'input');
  return inputsIn(input, request, 'input');
}

function inputsIn(text: string, request: FastifyRequest, name: 'body' | 'input'): Record<number, unknown> {
  const sent = text === '' ? undefined : parseJson(text, name);
  if (!isBatch(request)) return [sent];
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent))
    throw badRequest(`The ${name} of a batch must be an object.`, 'body_not_object');
  return sent as Record<number, unknown>;
}

/** If the kind is known, each call of the other kind is refused by itself. */
function mustBeValidBatch(names: string[], kind: string | undefined): void {
  if (names.length > LARGEST_BATCH) throw badRequest(`A batch has at most ${LARGEST_BATCH} calls.`, 'batch_invalid');
  const types = new Set(names.flatMap((name) => findProcedure(name)?.type ?? []));
  if (types.size > 1 && kind === undefined)
    throw badRequest('A batch has either queries or mutations, not both.', 'batch_invalid');
}

function mustNotBatchStreams(request: FastifyRequest, names: string[]): void {
  if (isBatch(request) && names.some(isSubscription))
    throw badRequest("A subscription can't be called in a batch.", 'batch_invalid');
}

const isBatch = (request: FastifyRequest) => (request.query as { batch?: unknown }).batch === '1';

/** The called procedures; each call of a batch counts. */
function namesOf(request: FastifyRequest): string[] {
  const { '*': path = '' } = request.params as { '*'?: string };
  return isBatch(request) ? path.split(',') : [path];
}

function methodsOf(request: FastifyRequest): string {
  const types = namesOf(request).map((name) => findProcedure(name)?.type);
  if (types.includes('mutation')) return 'POST';
  return types.includes('subscription') ? 'GET' : 'GET, POST';
}

const SURFACE = {
  isKnown: () => true,
  methodsOf,
  rule: (request: FastifyRequest) =>
    namesOf(request).some(isSubscription) ? 'a subscription is a GET' : 'a query is a GET or a POST, a mutation a POST',
};

function errorResponse(error: TRPCError, path?: string): { error: unknown } {
  const config = appRouter._def._config;
  const shape = getTRPCErrorShape({ config, error, type: 'unknown', path, input: undefined, ctx: undefined });
  return transformTRPCResponse(config, { error: shape }) as { error: unknown };
}

const writeError = (error: unknown, path: string | undefined) =>
  JSON.stringify(errorResponse(getTRPCErrorFromUnknown(error), path).error);
