import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { type Caller, findCaller } from '../domain/caller.ts';
import { tooManyRequests } from '../errors.ts';
import type { Tokens } from '../security/tokens.ts';
import type { Services } from '../services.ts';
import { addressKey, type Counted, networkOf, sendLimitHeaders, userKey } from './rateLimit.ts';

declare module 'fastify' {
  interface FastifyRequest {
    counted: Counted | undefined;
    caller: Caller | undefined;
  }
}

/**
 * The first steps of every request of a surface: count it, find out who is calling. A token that is genuine but no longer
 * stands counts for the address that sent it, so that nobody can use up the budget of the user whom it was taken from.
 */
export function identifyCallers(
  scope: FastifyInstance,
  { database, tokens, rateLimit }: Services,
  countCalls: (request: FastifyRequest) => number,
): void {
  scope.decorateRequest('counted', undefined);
  scope.decorateRequest('caller', undefined);

  scope.addHook('onRequest', async (request, reply) => {
    const calls = countCalls(request);
    const claims = readToken(request, tokens);
    if (!claims) return countFor(addressKey(request));

    await countFor(userKey(claims.userId));
    request.caller = await findCaller(database.fork(), claims, chosenProject(request));
    if (request.caller) return;

    await rateLimit.takeBack(userKey(claims.userId), calls);
    await countFor(addressKey(request));

    async function countFor(key: string) {
      const counted = await rateLimit.count(key, calls);
      request.counted = counted;
      sendLimitHeaders(reply, counted);
      if (counted.callsAllowed < calls) reply.header('Retry-After', counted.retryAfterSeconds);
      if (counted.callsAllowed === 0) {
        throw tooManyRequests('Too many requests. Try again later.', counted.retryAfterSeconds);
      }
    }
  });
}

/** What a procedure of this request is given. */
export function contextOf(request: FastifyRequest, { database, publicUrl, ...services }: Services): Context {
  return {
    em: database.fork(),
    isEmbedded: database.isEmbedded,
    log: request.log,
    tokens: services.tokens,
    guessing: services.guessing,
    payments: services.payments,
    publicUrl: publicUrl ?? request.server.listeningOrigin,
    address: networkOf(request.ip),
    caller: request.caller,
    callsAllowed: request.counted?.callsAllowed ?? 0,
    retryAfterSeconds: request.counted?.retryAfterSeconds ?? 0,
  };
}

function readToken(request: FastifyRequest, tokens: Tokens) {
  const token = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  return token === undefined ? undefined : tokens.read(token);
}

/** A header that names no id names no project. */
function chosenProject(request: FastifyRequest): number | undefined {
  const header = request.headers['x-project-id'];
  if (header === undefined) return undefined;
  const id = /^\d{1,10}$/.test(String(header)) ? Number(header) : NO_PROJECT;
  return id <= LARGEST_ID ? id : NO_PROJECT;
}
const NO_PROJECT = 0;
const LARGEST_ID = 2_147_483_647;

/** For surfaces: sends what an error asks for beyond its body. */
export function sendRetryAfter(reply: FastifyReply, retryAfterSeconds: number | undefined): void {
  if (retryAfterSeconds !== undefined) reply.header('Retry-After', retryAfterSeconds);
}
