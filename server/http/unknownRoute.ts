import type { FastifyInstance } from 'fastify';
import { notFound, wrongMethod } from '../errors.ts';
import { answerPreflight, isAllowedPreflight } from './origins.ts';

/** Under a surface, an unknown path is a 404 and a known one with another method a 405; both before any body is read. */
export function refuseUnknownRoutes(scope: FastifyInstance, isKnown: (path: string) => boolean): void {
  scope.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    if (isAllowedPreflight(request, reply)) return void answerPreflight(reply);
    const isWrongPath = request.method === 'POST' || !isKnown(request.url.split('?', 1)[0]!);
    if (isWrongPath) return done(notFound('There is no such path.'));
    reply.header('Allow', 'POST');
    done(wrongMethod(`${request.method} is not possible here: every operation is a POST.`));
  });
  // Never reached; it makes the hooks of this surface run for its unknown paths.
  scope.setNotFoundHandler((_request, reply) => reply.send());
}
