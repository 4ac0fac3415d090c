import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import helmet from 'helmet';
import { badRequest, type Failure } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import type { Counted } from '../limits/rateLimit.ts';
import { VERSION } from '../runtime/version.ts';

/** The headers of every response. */
export function sendHeaders(app: FastifyInstance): void {
  // Computed once, since they are the same for every response.
  const fixed = { ...securityHeaders(), 'X-Deckhand-Version': VERSION };
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(fixed).header('X-Request-Id', request.id);
    // Node ignores later requests on this connection.
    if (request.headers.upgrade !== undefined) reply.header('Connection', 'close');
    done();
  });
  // Surfaces check it after the rate limit, so that the response has its headers.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    if (!request.exchange) mustHaveHost(request);
    done();
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (reply.statusCode === 401 && !reply.hasHeader('WWW-Authenticate')) sendChallenge(request, reply);
    done();
  });
}

/** By their names in lower case. */
export function securityHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  const response = {
    setHeader: (name: string, value: string) => {
      headers[name.toLowerCase()] = value;
    },
    removeHeader: () => undefined,
  };
  const middleware = helmet({
    // The service has no TLS; the proxy that terminates TLS sends HSTS.
    strictTransportSecurity: false,
    contentSecurityPolicy: {
      // Styles and fonts of our own files only; helmet's defaults allow inline styles and any host with TLS.
      directives: {
        upgradeInsecureRequests: null,
        styleSrc: ["'self'"],
        fontSrc: ["'self'"],
        // Texts never become HTML or script, except where the page reads descriptions: `app/card/descriptionView.tsx`.
        requireTrustedTypesFor: ["'script'"],
        trustedTypes: ['deckhand'],
      },
    },
  });
  middleware({} as IncomingMessage, response as unknown as ServerResponse, (error) => {
    if (error) throw error;
  });
  return headers;
}

/** Says how to authenticate, and whether what was sent is wrong (RFC 6750). Assistants get more: `mcp.ts`. */
function sendChallenge(request: FastifyRequest, reply: FastifyReply): void {
  const isWrong = reasonsOf(request, reply).some((reason) => WRONG.has(reason));
  reply.header('WWW-Authenticate', isWrong ? `${BEARER}, error="invalid_token"` : BEARER);
}
const BEARER = 'Bearer realm="Deckhand"';
const WRONG = new Set<Reason>(['credential_invalid', 'key_ended']);

/** The limit, what is left of it, and the seconds until it is whole again. */
export const limitHeaders = ({ limit, remaining, until }: Counted) => ({
  'X-RateLimit-Limit': limit,
  'X-RateLimit-Remaining': remaining,
  'X-RateLimit-Reset': Math.max(0, Math.ceil((until - Date.now()) / 1000)),
});

export const REASON_HEADER = 'X-Error-Reason';

/** The headers of an error: its reason for programs, and when to retry. */
export function sendErrorHeaders(
  reply: FastifyReply,
  { reason, retryAfterSeconds }: Pick<Failure, 'reason' | 'retryAfterSeconds'>,
): void {
  reply.header(REASON_HEADER, reason);
  sendRetryAfter(reply, retryAfterSeconds);
}

/** The reasons of the calls of a request that failed, or that of the request. */
export function reasonsOf({ exchange }: FastifyRequest, reply: FastifyReply): readonly Reason[] {
  if (exchange && exchange.reasons.length > 0) return exchange.reasons;
  const reason = reply.getHeader(REASON_HEADER) as Reason | undefined;
  return reason ? [reason] : [];
}

export function sendRetryAfter(reply: FastifyReply, retryAfterSeconds: number | undefined): void {
  if (retryAfterSeconds !== undefined) reply.header('Retry-After', retryAfterSeconds);
}

export function mustHaveHost({ raw }: FastifyRequest): void {
  if (raw.httpVersionMinor > 0 && raw.headers.host === undefined)
    throw badRequest('The Host header is missing.', 'malformed_request');
}
