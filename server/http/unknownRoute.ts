import type { FastifyInstance } from 'fastify';
import { notFound, wrongMethod } from '../errors.ts';
import { answerPreflight, isAllowedPreflight } from './origins.ts';

/** An unknown path is a 404, another method on a known path a 405; both before the body is read. */
export function refuseUnknownRoutes(scope: FastifyInstance, isKnown: (path: string) => boolean): void {
  scope.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    if (isAllowedPreflight(request, reply)) return void answerPreflight(reply);
    const isWrongPath = request.method === 'POST' || !isKnown(request.url.split('?', 1)[0]!);
    if (isWrongPath) return done(notFound('There is no such path.', 'unknown_path'));
    reply.header('Allow', 'POST');
    done(wrongMethod(`${request.method} is not allowed here: every operation is a POST.`));
  });
  // Never reached; it only makes the hooks run for unknown paths.
  scope.setNotFoundHandler((_request, reply) => reply.send());
}
