import type { FastifyInstance } from 'fastify';
import type { Reason } from '../../shared/reasons.ts';
import { REASON_HEADER } from './errorHeaders.ts';

/** Says on every 401 how to authenticate, and whether what was sent is wrong (RFC 6750). Assistants get more: `mcp.ts`. */
export function challengeCallers(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (reply.statusCode === 401 && !reply.hasHeader('WWW-Authenticate')) {
      const reasons = request.reasons ?? [reply.getHeader(REASON_HEADER) as Reason | undefined];
      reply.header('WWW-Authenticate', reasons.some((reason) => WRONG.has(reason)) ? `${BEARER}, ${INVALID}` : BEARER);
    }
    done();
  });
}

const BEARER = 'Bearer realm="Deckhand"';
const INVALID = 'error="invalid_token"';
const WRONG = new Set<Reason | undefined>(['credential_invalid', 'key_ended']);
