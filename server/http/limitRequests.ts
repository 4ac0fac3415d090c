import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { toFailure } from '../../shared/errors.ts';
import { type Counted, networkKey, overLimit, type RateLimit } from '../limits/rateLimit.ts';
import { canonicalAddress } from '../runtime/address.ts';
import { asBadRequest } from './body.ts';

/** Counts every request by its address, signed in or not. */
export function limitAddresses(scope: FastifyInstance, rateLimit: RateLimit): void {
  scope.addHook('onRequest', (request, reply) => limitAddress(request, reply, rateLimit));
}

export async function limitAddress(request: FastifyRequest, reply: FastifyReply, rateLimit: RateLimit): Promise<void> {
  const counted = await rateLimit.count(addressKey(request), 1);
  sendLimitHeaders(reply, counted);
  if (counted.callsAllowed === 0) throw overLimit(counted);
}

/** Counts only requests that get a 400: the payment provider may send any number of signed notifications. */
export function limitBadRequests(scope: FastifyInstance, rateLimit: RateLimit): void {
  scope.setErrorHandler(async (error, request, reply) => {
    if (toFailure(asBadRequest(error)).status === 400) await limitAddress(request, reply, rateLimit);
    throw error;
  });
}

export function sendLimitHeaders(reply: FastifyReply, counted: Counted): void {
  reply.headers(limitHeaders(counted));
}

/** The limit, what is left of it, and the seconds until it is whole again. */
export const limitHeaders = ({ limit, remaining, until }: Counted) => ({
  'X-RateLimit-Limit': limit,
  'X-RateLimit-Remaining': remaining,
  'X-RateLimit-Reset': Math.max(0, Math.ceil((until - Date.now()) / 1000)),
});

/** The key that calls without a valid token are counted under. */
export const addressKey = (request: FastifyRequest) => networkKey(addressOf(request));

/** The client's address. Some proxies append a port; a value that is not an address counts as the proxy's own. */
export function addressOf({ ip, socket }: FastifyRequest): string {
  const [, withoutPort = ip] =
    /^([\d.]+):\d+$|^\[(.+)\](?::\d+)?$/.exec(ip)?.filter((part) => part !== undefined) ?? [];
  return canonicalAddress(withoutPort) ?? canonicalAddress(socket.remoteAddress ?? '') ?? 'unknown';
}
