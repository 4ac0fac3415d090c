import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badRequest, type Failure, toFailure } from '../../shared/errors.ts';
import { LARGEST_INTEGER } from '../../shared/limits.ts';
import type { Role } from '../../shared/user.ts';
import { findProcedure } from '../api/procedures.ts';
import type { Services } from '../api/services.ts';
import { admit, type Exchange, giveBackBusy, settleCaller } from '../call/answer.ts';
import { logFailure } from '../call/logFailure.ts';
import { clientAddress } from '../runtime/address.ts';
import { counted } from '../runtime/count.ts';
import { Leaving } from '../runtime/leaving.ts';
import { limitHeaders, mustHaveHost } from './headers.ts';
import { asksForStream } from './streamAsked.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set for the surfaces of procedures: REST, RPC and MCP. */
    exchange: Exchange | undefined;
  }
}

/** Turns the requests of a surface into exchanges, and what came of these into headers. */
export function openExchanges(
  scope: FastifyInstance,
  services: Services,
  /** The names of the procedures that a request calls; each counts against the limit. */
  namesOf: (request: FastifyRequest) => string[],
  /** The highest role that a procedure may need, where the body names it. */
  neededRole?: Role,
): void {
  scope.decorateRequest('exchange', undefined);
  scope.addHook('onRequest', (request, reply, done) => {
    // Responses are private, and some contain tokens, secrets or recovery codes.
    reply.header('Cache-Control', 'no-store');
    request.exchange = exchangeOf(request, reply, services, namesOf(request), neededRole);
    done();
  });

  scope.addHook('onSend', ({ exchange }, reply, payload, done) => {
    if (!exchange) return done();
    const describe = () => {
      describeExchange(exchange, reply, payload);
      done();
    };
    // A fault, or a busy service, is told at once. The 429 of the address would come too late.
    const isToldAtOnce = reply.statusCode >= 429;
    const settled = isToldAtOnce ? undefined : settleCaller(exchange)?.catch(() => undefined);
    const givenBack = settled?.then(() => giveBackBusy(exchange)) ?? giveBackBusy(exchange);
    if (givenBack) givenBack.then(describe, done);
    else describe();
  });

  scope.addHook('onResponse', ({ exchange, log }, _reply, done) => {
    done();
    const key = exchange?.caller?.key;
    if (key?.isUseDue) services.keyUse.note(key.id);
    // The calls of a streamed batch end after its headers.
    if (exchange) giveBackBusy(exchange)?.catch((error) => log.warn(error));
  });
}

function describeExchange({ limit, calls, unsent }: Exchange, reply: FastifyReply, payload: unknown): void {
  if (limit) reply.headers(limitHeaders(limit));
  if (limit && limit.callsAllowed < calls) reply.header('Retry-After', limit.retryAfterSeconds);
  if (typeof payload === 'string' || Buffer.isBuffer(payload)) unsent?.setBytes(Buffer.byteLength(payload));
}

function exchangeOf(
  request: FastifyRequest,
  reply: FastifyReply,
  services: Services,
  names: string[],
  neededRole: Role | undefined,
): Exchange {
  const exchange: Exchange = {
    services,
    token: /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1] ?? '',
    projectId: chosenProject(request),
    origin: {
      surface: request.routeOptions.config.surface ?? 'rest',
      requestId: request.id,
      address: clientAddress(request),
      serviceUrl: services.publicUrl ?? request.server.ownOrigin,
    },
    log: request.log,
    leaving: new Leaving(),
    calls: names.length,
    isPlain: request.headers['idempotency-key'] === undefined && !asksForStream(request),
    called: names.flatMap((name) => findProcedure(name) ?? []),
    neededRole,
    reasons: [],
  };
  // Fastify's own signal misses a connection that closes after the body is read.
  reply.raw.once('close', () => {
    exchange.unsent?.release();
    if (!reply.raw.writableFinished) exchange.leaving?.leave();
  });
  return exchange;
}

/** Admits the request of a surface. Its body is not read yet. */
export async function admitRequest(request: FastifyRequest): Promise<Exchange> {
  const exchange = request.exchange as Exchange;
  await admit(exchange);
  mustHaveHost(request);
  return exchange;
}

/** Notes why a whole request is refused. */
export function refuseRequest(request: FastifyRequest, error: unknown): Failure {
  const failure = toFailure(error);
  logFailure(request.log, error, failure);
  request.exchange?.reasons.splice(0, Number.POSITIVE_INFINITY, failure.reason);
  return failure;
}

/** An invalid id selects no project. */
function chosenProject({ headers }: FastifyRequest): number | undefined {
  const header = headers['x-project-id'];
  if (header === undefined) return undefined;
  const id = /^\d{1,10}$/.test(String(header)) ? Number(header) : NO_PROJECT;
  return id <= LARGEST_INTEGER ? id : NO_PROJECT;
}
const NO_PROJECT = 0;

type Key = string | Error | undefined;

/** The idempotency keys of the calls. The header of a batch has a place for each call, which may be empty. */
export function keysOf({ headers }: FastifyRequest, batchOf?: number): Key[] {
  const header = headers['idempotency-key'] as string | undefined;
  if (header === undefined) return [];
  if (batchOf === undefined) return [readKey(header)];
  const listed = header.split(',').map((key) => key.trim());
  if (listed.length === batchOf) return listed.map((key) => (key === '' ? undefined : readKey(key)));
  return Array(batchOf).fill(invalidKey(`must have ${counted(batchOf, 'key')}, one for each call of the batch`));
}

/** A key, or the 400 of an invalid one: anything but a short text. */
export const readKey = (key: unknown): Key =>
  typeof key === 'string' && /^[\x20-\x7e]{1,255}$/.test(key)
    ? key
    : invalidKey('must have 1 to 255 printable ASCII characters');

const invalidKey = (predicate: string) => badRequest(`Idempotency-Key ${predicate}.`, 'idempotency_key_invalid');

/** Tells that a response is that of an earlier call: `true`, or the replayed batch indexes. */
export function sendReplayed(reply: FastifyReply, indexes: number[], calls: number): void {
  if (indexes.length > 0) reply.header('Idempotent-Replayed', indexes.length === calls ? 'true' : indexes.join());
}
