import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { notFound, wrongMethod } from '../../shared/errors.ts';
import { isAllowedPreflight, sendPreflight } from './origins.ts';

type Surface = {
  isKnown: (path: string) => boolean;
  /** The methods of a path, as in the header `Allow`. */
  methodsOf: (request: FastifyRequest) => string;
  /** Which methods there are, for people. */
  rule: (request: FastifyRequest) => string;
};

/** An unknown path is a 404, another method on a known path of a surface a 405; both before the body is read. */
export function refuseUnknownRoutes(scope: FastifyInstance, surface?: Surface): void {
  scope.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    if (!surface) return done(noSuchPath());
    const methods = surface.methodsOf(request);
    if (isAllowedPreflight(request, reply)) return void sendPreflight(reply, methods);
    const isWrongPath =
      methods.split(', ').includes(request.method) || !surface.isKnown(request.url.replace(/\?.*/s, ''));
    done(isWrongPath ? noSuchPath() : refuseMethod(request, reply, surface));
  });
  // Never reached; it only makes the hooks run for unknown paths.
  scope.setNotFoundHandler((_request, reply) => reply.send());
}

const noSuchPath = () => notFound('There is no such path.', 'unknown_path');

/** A 405 that names the allowed methods. */
export function refuseMethod(request: FastifyRequest, reply: FastifyReply, { methodsOf, rule }: Surface): Error {
  reply.header('Allow', methodsOf(request));
  return wrongMethod(`${request.method} is not allowed here: ${rule(request)}.`);
}
