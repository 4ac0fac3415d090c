import { getTRPCErrorFromUnknown, getTRPCErrorShape, transformTRPCResponse } from '@trpc/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, JSON_WANTED, notFound } from '../../shared/errors.ts';
import { LARGEST_BATCH } from '../../shared/limits.ts';
import type { Reason } from '../../shared/reasons.ts';
import { findProcedure, type Procedure } from '../api/procedures.ts';
import { appRouter } from '../api/routers/app.ts';
import { mustBeReadable, transformer, withoutDirection } from '../api/rpcInput.ts';
import type { Services } from '../api/services.ts';
import { answer, noteRefused, type Refused } from '../call/answer.ts';
import { hasLargeField } from '../runtime/jsonText.ts';
import { trace } from '../runtime/tracing.ts';
import { DEEPEST_BODY, leaveBodies, mustBeParsable, parseJson, readBody } from './body.ts';
import { admitRequest, keysOf, openExchanges, refuseRequest, sendReplayed } from './exchange.ts';
import { sendRetryAfter } from './headers.ts';
import { sendInPieces } from './largeAnswer.ts';
import { writeSuperjson, writeSuperjsonInPieces } from './rpcOutput.ts';
import { streamCalls } from './rpcStream.ts';
import { asksForEvents, isSubscription, sendErrorMessage, sendSubscription } from './rpcSubscription.ts';
import { asksForStream } from './streamAsked.ts';
import { refuseMethod, refuseUnknownRoutes } from './unknownRoute.ts';

/** The levels around an input: the batch, its index, and superjson's `json`. */
const ENVELOPE_LEVELS = 3;

/**
 * The RPC surface for `@trpc/client`: queries with GET or POST, mutations only with POST. Procedures are called directly, unless
 * the caller asks for a stream: tRPC's own adapter takes three times as long.
 */
export async function rpcSurface(scope: FastifyInstance, services: Services): Promise<void> {
  leaveBodies(scope);
  openExchanges(scope, services, namesOf);
  refuseUnknownRoutes(scope, SURFACE);
  scope.setErrorHandler((error, request, reply) => {
    const failure = refuseRequest(request, error);
    return refuse(request, reply, { failure, error });
  });

  const options = { exposeHeadRoute: false, config: { surface: 'rpc' as const } };
  scope.route({ method: ['GET', 'POST'], url: '/*', ...options, handler: respond });
}

async function respond(request: FastifyRequest, reply: FastifyReply) {
  const exchange = await admitRequest(request);
  const names = namesOf(request);
  const kind = kindOf(request);
  const isStreamed = isBatch(request) && asksForStream(request);
  mustBeValidBatch(names, isStreamed ? undefined : kind);
  mustNotBatchStreams(request, names);
  if (!methodsOf(request).includes(request.method)) throw refuseMethod(request, reply, SURFACE);
  const inputs = inputsOf(request, reply);
  if (names.some(isSubscription)) {
    const writeOwn = (error: unknown) => writeError(error, names[0]);
    return sendSubscription(
      request,
      reply,
      () => inputs.read(0),
      writeOwn,
      (refused) => refuse(request, reply, refused),
    );
  }
  const keys = keysOf(request, isBatch(request) ? names.length : undefined);
  const answerAt = (index: number) => {
    const name = names[index] as string;
    const procedure = findProcedure(name);
    if (!procedure) throw notFound(`No procedure found on path "${name}"`, 'unknown_procedure');
    if (kind !== undefined && kind !== procedure.type) throw wrongKind(procedure);
    return answer(exchange, { procedure, index, readInput: () => inputs.read(index), key: keys[index] });
  };
  if (isStreamed) return streamCalls(request, reply, { names, answer: answerAt });

  const responses = await Promise.all(names.map((name, index) => traceCall(name, () => respondTo(name, index))));
  if (inputs.error && responses.every(({ error }) => error === inputs.error)) throw inputs.error;
  for (const { retryAfterSeconds } of responses) sendRetryAfter(reply, retryAfterSeconds);
  sendReplayed(
    reply,
    responses.flatMap(({ isReplayed }, at) => (isReplayed ? at : [])),
    names.length,
  );
  const [status = MULTI_STATUS, other] = new Set(responses.map(({ status }) => status));
  reply.code(other === undefined ? status : MULTI_STATUS).header('content-type', 'application/json; charset=utf-8');
  const texts = responses.map(({ text }) => text);
  const [begin, end] = isBatch(request) ? ['[', ']'] : ['', ''];
  if (texts.every((text) => typeof text === 'string')) return reply.send(`${begin}${texts.join()}${end}`);
  const parts = texts.flatMap((text, at) => [[at === 0 ? begin : ','], typeof text === 'string' ? [text] : text]);
  return sendInPieces(request, reply, [...parts, [end]]);

  async function respondTo(name: string, index: number): Promise<CallResponse> {
    try {
      const answered = await answerAt(index);
      if ('data' in answered) return { status: 200, text: writeResult(answered.data), isReplayed: answered.isReplayed };
      const { failure, error } = answered;
      return { ...failure, error, text: JSON.stringify(errorResponse(error, name)) };
    } catch (error) {
      const { failure } = noteRefused(exchange, error);
      return { ...failure, error, text: JSON.stringify(errorResponse(error, name)) };
    }
  }
}

/** Refuses a whole request. */
function refuse(request: FastifyRequest, reply: FastifyReply, { failure, error }: Refused): FastifyReply {
  sendRetryAfter(reply, failure.retryAfterSeconds);
  const names = namesOf(request);
  if (asksForEvents(request, names)) return sendErrorMessage(reply, writeError(error, names[0]));
  return reply.code(failure.status).send(errorResponse(error));
}

const MULTI_STATUS = 207;

type CallResponse = {
  status: number;
  text: string | Iterable<string>;
  reason?: Reason;
  error?: unknown;
  retryAfterSeconds?: number | undefined;
  isReplayed?: boolean;
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

type Inputs = {
  /** The input of a call by its index in the batch. */
  read: (index: number) => Promise<unknown>;
  /** What is wrong with the body, once it was read; it concerns all calls. */
  error: unknown;
};

/** The inputs of a request. Its body is read and parsed for the first call that is allowed. */
function inputsOf(request: FastifyRequest, reply: FastifyReply): Inputs {
  const isGet = request.method === 'GET';
  const called = namesOf(request).map(findProcedure);
  const needsInput = called.map((procedure) => procedure?.needsInput ?? true);
  if (!isGet && needsInput.includes(true) && request.sentBody.type === undefined)
    throw badRequest(JSON_WANTED, 'body_not_json');
  let body: Promise<string> | undefined;
  let parsed: Record<number, unknown> | undefined;
  const inputs: Inputs = {
    error: undefined,
    read: async (index) => {
      if (!isGet) {
        body ??= readBody(request, reply, DEEPEST_BODY + ENVELOPE_LEVELS).catch((error) => {
          inputs.error = error;
          throw error;
        });
        await body;
      }
      parsed ??= isGet ? inputsOfQuery(request) : inputsIn((await body) ?? '', request, 'body');
      const sent = parsed[index] === undefined ? undefined : transformer.input.deserialize(parsed[index]);
      mustBeReadable(sent);
      const input = sent ?? (needsInput[index] ? sent : {});
      return called[index]?.isPaged ? withoutDirection(input) : input;
    },
  };
  return inputs;
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

function errorResponse(thrown: unknown, path?: string): { error: unknown } {
  const config = appRouter._def._config;
  const error = getTRPCErrorFromUnknown(thrown);
  const shape = getTRPCErrorShape({ config, error, type: 'unknown', path, input: undefined, ctx: undefined });
  return transformTRPCResponse(config, { error: shape }) as { error: unknown };
}

const writeError = (error: unknown, path: string | undefined) => JSON.stringify(errorResponse(error, path).error);
