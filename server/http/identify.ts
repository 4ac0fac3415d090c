import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LARGEST_INTEGER } from '../../shared/limits.ts';
import type { Reason } from '../../shared/reasons.ts';
import type { Role } from '../../shared/user.ts';
import { findProcedure, type Procedure } from '../api/procedures.ts';
import type { Services } from '../api/services.ts';
import { decideAccess, highestNeeded, wrongCredential } from '../domain/access/access.ts';
import type { Credential } from '../domain/access/caller.ts';
import type { AccessDecisions, AccountCaller, Context } from '../domain/access/context.ts';
import { BUSY, type Counted, overLimit, userKey } from '../limits/rateLimit.ts';
import { makeResponseBudget } from '../limits/responseBudget.ts';
import type { UnsentResponse } from '../limits/unsentResponses.ts';
import { isKeySecret, readKeySecret } from '../security/apiKeys.ts';
import type { Tokens } from '../security/tokens.ts';
import { REASON_HEADER } from './errorHeaders.ts';
import { readKeys } from './idempotencyKey.ts';
import { addressKey, addressOf, sendLimitHeaders } from './limitRequests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The known procedures that it names. */
    called: Procedure[] | undefined;
    counted: Counted | undefined;
    /** What is left after further calls were counted. */
    countedLast: Counted | undefined;
    caller: AccountCaller | undefined;
    access: AccessDecisions | undefined;
    /** The 401 of a wrong token or key; undefined if none was sent. */
    unidentified: Error | undefined;
    /** Set if the body was not complete when the caller was found. */
    findCallerAgain: (() => Promise<void>) | undefined;
    /** Undefined before a procedure is called. */
    unsent: UnsentResponse | undefined;
    /** Whether its headers are sent before its calls are done. */
    isStreamed: boolean;
    /** Aborted if the connection closes before the response is sent. Fastify's `signal` misses that once the body is read. */
    callerSignal: AbortSignal | undefined;
  }
}

/**
 * The first steps of every REST, RPC and MCP request: find the caller, decide their access, and count the request for them. A token
 * with a valid signature but without a valid session counts for the address, so that a stolen token can't use up the user's
 * rate limit.
 */
export function identifyCallers(
  scope: FastifyInstance,
  { findCaller, findEndedKey, tokens, rateLimit, unsentResponses, keyHolders, keyUse }: Services,
  /** The names of the procedures that a request calls; each counts against the limit. */
  namesOf: (request: FastifyRequest) => string[],
  /** The highest role that a procedure may need, where the body names it: it decides its access itself. */
  roleIfUnknown?: Role,
): void {
  scope.decorateRequest('called', undefined);
  scope.decorateRequest('counted', undefined);
  scope.decorateRequest('countedLast', undefined);
  scope.decorateRequest('caller', undefined);
  scope.decorateRequest('access', undefined);
  scope.decorateRequest('unidentified', undefined);
  scope.decorateRequest('findCallerAgain', undefined);
  scope.decorateRequest('unsent', undefined);
  scope.decorateRequest('callerSignal', undefined);
  scope.decorateRequest('isStreamed', false);

  scope.addHook('onRequest', async (request, reply) => {
    // Responses are private, and some contain tokens, secrets or recovery codes.
    reply.header('Cache-Control', 'no-store');
    const names = namesOf(request);
    const calls = names.length;
    const called = names.flatMap((name) => findProcedure(name) ?? []);
    request.called = called;
    const token = tokenOf(request);
    const credential = readCredential(token, tokens);
    if (!credential) {
      if (token !== '') request.unidentified = wrongCredential(isKeySecret(token));
      return admitCounted(await rateLimit.count(addressKey(request), calls));
    }

    // Anybody can make up a key with a valid checksum: until it is found, its calls count for the address.
    const userId = 'keyHash' in credential ? keyHolders.find(credential.keyHash) : credential.userId;
    const exhausted = rateLimit.exhausted(userId === undefined ? addressKey(request) : userKey(userId));
    if (exhausted) return admitCounted(exhausted);

    try {
      const neededRole = highestNeeded(called.map(({ access }) => access)) ?? roleIfUnknown;
      const find = () => findCaller(credential, chosenProject(request), neededRole);
      request.caller = await find();
      // The embedded database answers before Node has parsed a body that came with the headers.
      if (!request.raw.complete) await setImmediate();
      if (!request.raw.complete)
        request.findCallerAgain = async () => {
          request.caller = await find();
          await decide();
        };
    } catch (error) {
      admitCounted(await rateLimit.count(addressKey(request), calls));
      throw error;
    }
    if ('keyHash' in credential) keyHolders.remember(credential.keyHash, request.caller?.id);
    admitCounted(await rateLimit.count(callerKey(request), calls, request.caller?.ownRateLimit));
    if (!request.caller) await decide();

    /** After the call is counted: guesses of ended keys are limited like others. */
    async function decide() {
      if (!request.caller && credential) {
        const ended = 'keyHash' in credential ? await findEndedKey(credential.keyHash) : undefined;
        request.unidentified = ended ?? wrongCredential('keyHash' in credential);
      }
      request.access = decideAccess(request.caller, called, request.unidentified);
    }

    function admitCounted(counted: Counted) {
      request.counted = counted;
      sendLimitHeaders(reply, counted);
      if (counted.callsAllowed < calls) reply.header('Retry-After', counted.retryAfterSeconds);
      if (counted.callsAllowed === 0) throw overLimit(counted);
      unsentResponses.mustBeFew(callerKey(request));
      request.access = decideAccess(request.caller, called, request.unidentified);
    }
  });

  // A body may take 30 seconds: callers who were signed out or lost their role meanwhile are refused.
  scope.addHook('preHandler', async (request, reply) => {
    if (request.findCallerAgain) await request.findCallerAgain();
    const caller = new AbortController();
    request.callerSignal = caller.signal;
    // A closed connection would never release its response.
    if (reply.raw.closed) return caller.abort();
    const unsent = unsentResponses.open(callerKey(request));
    request.unsent = unsent;
    reply.raw.once('close', () => {
      unsent.release();
      if (!reply.raw.writableFinished) caller.abort();
    });
  });

  scope.addHook('onResponse', (request, reply, done) => {
    done();
    const key = request.caller?.key;
    if (key?.isUseDue) keyUse.note(key.id);
    const { counted, isStreamed } = request;
    const unserved = isStreamed ? unservedCalls(request, reply) : 0;
    if (counted && unserved > 0) rateLimit.giveBack(counted, unserved).catch((error) => request.log.warn(error));
  });

  scope.addHook('onSend', (request, reply, _payload, done) => {
    const { counted, countedLast } = request;
    const unserved = unservedCalls(request, reply);
    if (countedLast) sendLimitHeaders(reply, countedLast);
    if (!counted || unserved === 0) return done();
    rateLimit.giveBack(counted, unserved).then((left) => {
      sendLimitHeaders(reply, left);
      done();
    }, done);
  });

  scope.addHook('onSend', (request, _reply, payload, done) => {
    if (typeof payload === 'string' || Buffer.isBuffer(payload)) request.unsent?.setBytes(Buffer.byteLength(payload));
    done();
  });
}

/**
 * How many calls of a request to give back: if some were refused as busy, these, and those above the limit, which were counted.
 * None to a caller who leaves the queue: it would be a way around the limit.
 */
function unservedCalls({ reasons, counted, callerSignal }: FastifyRequest, reply: FastifyReply): number {
  if (callerSignal?.aborted) return 0;
  const errors = reasons ?? [reply.getHeader(REASON_HEADER) as Reason | undefined];
  if (!errors.some((reason) => BUSY.has(reason))) return 0;
  const isWholeRequest = errors.length === 1 && reply.statusCode === 429;
  if (isWholeRequest) return counted?.calls ?? 0;
  return errors.filter((reason) => BUSY.has(reason) || reason === 'over_rate_limit').length;
}

/** The rate limit key of a request: its user, else its address. */
const callerKey = (request: FastifyRequest) => (request.caller ? userKey(request.caller.id) : addressKey(request));

/** The context for the procedures of this request. */
export function contextOf(
  request: FastifyRequest,
  services: Services,
  /** The number of calls in a batch; undefined for a single call. */
  batchOf?: number,
): Context {
  return {
    db: services.database.db,
    replicas: services.replicas,
    bulkPace: services.database.bulkPace,
    hasSearchIndex: services.database.hasSearchIndex,
    log: request.log,
    tokens: services.tokens,
    attemptLimit: services.attemptLimit,
    secretBox: services.secretBox,
    payments: services.payments,
    publicUrl: services.publicUrl ?? request.server.ownOrigin,
    address: addressOf(request),
    eventsKeptDays: services.eventsKeptDays,
    keyMaxDays: services.keyMaxDays,
    webhookAllowedHosts: services.webhookAllowedHosts,
    eventHub: services.eventHub,
    origin: { surface: request.routeOptions.config.surface ?? 'rest', requestId: request.id },
    queue: services.queue,
    responseBudget: makeResponseBudget(request.unsent, batchOf ?? 1),
    idempotency: readKeys(request, batchOf),
    isStopping: services.isStopping,
    caller: request.caller,
    access: request.access,
    callsAllowed: request.counted?.callsAllowed ?? 0,
    retryAfterSeconds: request.counted?.retryAfterSeconds ?? 0,
    countFurther: request.counted && countFurtherFor(request, request.counted, services),
  };
}

const countFurtherFor =
  (request: FastifyRequest, counted: Counted, { rateLimit }: Services): Context['countFurther'] =>
  (calls, work) =>
    rateLimit.countFurther(counted, calls, work, (last) => {
      request.countedLast = last;
    });

const tokenOf = ({ headers }: FastifyRequest) => /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? '';

function readCredential(token: string, tokens: Tokens): Credential | undefined {
  if (token === '') return undefined;
  if (!isKeySecret(token)) return tokens.read(token);
  const keyHash = readKeySecret(token);
  return keyHash === undefined ? undefined : { keyHash };
}

/** An invalid id selects no project. */
function chosenProject(request: FastifyRequest): number | undefined {
  const header = request.headers['x-project-id'];
  if (header === undefined) return undefined;
  const id = /^\d{1,10}$/.test(String(header)) ? Number(header) : NO_PROJECT;
  return id <= LARGEST_INTEGER ? id : NO_PROJECT;
}
const NO_PROJECT = 0;
