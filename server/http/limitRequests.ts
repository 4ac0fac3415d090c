import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { toFailure } from '../../shared/errors.ts';
import { networkKey, overLimit, type RateLimit } from '../limits/rateLimit.ts';
import { clientAddress } from '../runtime/address.ts';
import { asBadRequest } from './body.ts';
import { limitHeaders } from './headers.ts';

/** Counts every request by its address, signed in or not. */
export function limitAddresses(scope: FastifyInstance, rateLimit: RateLimit): void {
  scope.addHook('onRequest', (request, reply) => limitAddress(request, reply, rateLimit));
}

export async function limitAddress(request: FastifyRequest, reply: FastifyReply, rateLimit: RateLimit): Promise<void> {
  const counted = await rateLimit.count(networkKey(clientAddress(request)), 1);
  reply.headers(limitHeaders(counted));
  if (counted.callsAllowed === 0) throw overLimit(counted);
}

/** Counts only requests that get a 400: the payment provider may send any number of signed notifications. */
export function limitBadRequests(scope: FastifyInstance, rateLimit: RateLimit): void {
  scope.setErrorHandler(async (error, request, reply) => {
    if (toFailure(asBadRequest(error)).status === 400) await limitAddress(request, reply, rateLimit);
    throw error;
  });
}
