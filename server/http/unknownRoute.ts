import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { notFound, wrongMethod } from '../../shared/errors.ts';
import { admitRequest } from './exchange.ts';
import { sendErrorHeaders } from './headers.ts';
import { isAllowedPreflight, sendPreflight } from './origins.ts';

type Surface = {
  isKnown: (path: string) => boolean;
  /** The methods of a path, as in the header `Allow`. */
  methodsOf: (request: FastifyRequest) => string;
  /** Which methods there are, for people. */
  rule: (request: FastifyRequest) => string;
};

/** An unknown path is a 404, before the body is read. A browser gets the page, if there is one. */
export function refuseUnknownPaths(scope: FastifyInstance, page?: string): void {
  scope.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    // A file that is unknown while versions change may be known a moment later.
    reply.header('Cache-Control', 'no-store');
    if (page !== undefined) reply.header('Vary', 'Accept');
    if (page === undefined || !isOpenedInBrowser(request)) return done(noSuchPath());
    sendErrorHeaders(reply, { reason: 'unknown_path' });
    reply.code(404).type('text/html; charset=utf-8').send(page);
  });
  // Never reached; it only makes the hooks run for unknown paths.
  scope.setNotFoundHandler((_request, reply) => reply.send());
}

/** An unknown path of a surface is a 404, another method on a known path a 405; both before the body is read. */
export function refuseUnknownRoutes(scope: FastifyInstance, surface: Surface): void {
  scope.setNotFoundHandler(async (request, reply) => {
    await admitRequest(request);
    const methods = surface.methodsOf(request);
    if (isAllowedPreflight(request, reply)) return sendPreflight(reply, methods);
    const isWrongPath =
      methods.split(', ').includes(request.method) || !surface.isKnown(request.url.replace(/\?.*/s, ''));
    throw isWrongPath ? noSuchPath() : refuseMethod(request, reply, surface);
  });
}

/** Paths for programs, which get JSON even if someone opens them in a browser. */
const FOR_PROGRAMS = /^\/(api|trpc|mcp|health)(?![\w-])/;

const isOpenedInBrowser = ({ method, url, headers }: FastifyRequest) =>
  ['GET', 'HEAD'].includes(method) && !FOR_PROGRAMS.test(url) && (headers.accept ?? '').includes('text/html');

const noSuchPath = () => notFound('There is no such path.', 'unknown_path');

/** A 405 that names the allowed methods. */
export function refuseMethod(request: FastifyRequest, reply: FastifyReply, { methodsOf, rule }: Surface): Error {
  reply.header('Allow', methodsOf(request));
  return wrongMethod(`${request.method} is not allowed here: ${rule(request)}.`);
}
