import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** Allows pages of these origins to call the service (CORS); browsers block all others. */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.addHook('onRequest', ({ headers: { origin } }, reply, done) => {
    reply.header('Vary', 'Origin');
    if (origin !== undefined && origins.includes(origin)) {
      reply.headers({ [ALLOWED]: origin, 'Access-Control-Expose-Headers': READABLE });
    }
    done();
  });
}

const ALLOWED = 'Access-Control-Allow-Origin';
const READABLE =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, X-Error-Reason, Retry-After, ETag, Idempotent-Replayed, X-Deckhand-Version, Deprecation, Sunset, Link, WWW-Authenticate';

/** Whether a page of another origin sent it that is not allowed: it may have been led here by a changed DNS entry. */
export const isForeign = ({ headers: { origin } }: FastifyRequest, reply: FastifyReply, own: string) =>
  origin !== undefined && origin !== own && !reply.hasHeader(ALLOWED);

/** Whether it is the preflight request of an allowed origin. */
export function isAllowedPreflight({ method, headers }: FastifyRequest, reply: FastifyReply): boolean {
  return method === 'OPTIONS' && 'access-control-request-method' in headers && reply.hasHeader(ALLOWED);
}

export function sendPreflight(reply: FastifyReply, methods: string): FastifyReply {
  return reply
    .code(204)
    .headers({
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Allow-Headers':
        'Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, X-Deckhand-Client, X-Project-Id, X-Request-Id, traceparent, tracestate, trpc-accept',
      'Access-Control-Max-Age': 600,
    })
    .send();
}
