import type { FastifyInstance } from 'fastify';
import { notFound, wrongMethod } from '../errors.ts';
import { answerPreflight, isAllowedPreflight } from './origins.ts';

/** Under a surface, an unknown path is a 404 and a known one with another method a 405; both before any body is read. */
export function refuseUnknownRoutes(scope: FastifyInstance, isKnown: (path: string) => boolean): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return;
    if (isAllowedPreflight(request, reply)) return answerPreflight(reply);
    if (request.method === 'POST' || !isKnown(request.url.split('?', 1)[0]!)) throw notFound('There is no such path.');
    reply.header('Allow', 'POST');
    throw wrongMethod(`${request.method} is not possible here: every operation is a POST.`);
  });
  // Never reached; it makes the hooks of this surface run for its unknown paths.
  scope.setNotFoundHandler((_request, reply) => reply.send());
}
