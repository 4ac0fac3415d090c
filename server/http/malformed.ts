import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { type Counted, networkKey, OVER_LIMIT, type RateLimit } from '../limits/rateLimit.ts';
import { canonicalAddress } from '../runtime/address.ts';
import { VERSION } from '../runtime/version.ts';
import { limitHeaders, REASON_HEADER } from './headers.ts';

type Dependencies = { rateLimit: RateLimit; logger: FastifyBaseLogger };

/** Answers malformed HTTP requests, which reach no route, with the usual body and headers. */
export function malformedRequests({ rateLimit, logger }: Dependencies) {
  const refuse = async (socket: Socket, message: string, reason: string | undefined): Promise<void> => {
    const address = canonicalAddress(socket.remoteAddress ?? '') ?? 'unknown';
    const requestId = randomUUID();
    const counted = await rateLimit.count(networkKey(address), 1);
    const isOverLimit = counted.callsAllowed === 0;
    const body = isOverLimit ? { error: true, message: OVER_LIMIT } : { error: true, message, data: [] };
    logger.info({ reqId: requestId, status: isOverLimit ? 429 : 400, address, reason }, 'refused a malformed request');
    if (socket.writable) socket.end(rawResponse(isOverLimit, body, counted, requestId));
  };

  return {
    /** For Fastify's `clientErrorHandler`. */
    onClientError: (error: NodeJS.ErrnoException, socket: Socket): void => {
      // The caller is gone, or the request has already been answered.
      if (error.code === 'ECONNRESET' || !socket.writable || isAnswered(socket)) return void socket.destroy();
      const valid = responseInFrontOf(socket);
      if (valid) return void valid.once('finish', () => socket.destroySoon());
      const message = MESSAGES[error.code ?? ''] ?? 'This is not a valid HTTP request.';
      refuse(socket, message, error.code).catch(() => socket.destroy());
    },

    attachTo: (app: FastifyInstance): void => {
      app.server.on('connect', ({ method }: IncomingMessage, socket: Socket) => {
        refuse(socket, `${method} is not supported.`, method).catch(() => socket.destroy());
      });
    },
  };
}

const MESSAGES: Record<string, string> = {
  HPE_HEADER_OVERFLOW: 'The headers are too large: at most 16 KiB.',
  HPE_INVALID_METHOD: 'The method is unknown.',
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not arrive in time.',
};

/** Node's internal state of a connection: the request being read, and the response being written. */
type HttpSocket = Socket & { parser?: { incoming?: IncomingMessage | null }; _httpMessage?: ServerResponse | null };

/** Whether the incomplete request was already answered, or is about to be. */
function isAnswered(socket: HttpSocket): boolean {
  const { parser, _httpMessage: response } = socket;
  if (response) return response.headersSent && !response.req.complete;
  return parser?.incoming?.complete === false;
}

/** The response to a valid request before the malformed one; it is sent first. */
function responseInFrontOf({ _httpMessage: response }: HttpSocket): ServerResponse | undefined {
  return response?.req.complete ? response : undefined;
}

function rawResponse(isOverLimit: boolean, body: object, counted: Counted, requestId: string): string {
  const text = JSON.stringify(body);
  return [
    isOverLimit ? 'HTTP/1.1 429 Too Many Requests' : 'HTTP/1.1 400 Bad Request',
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    `X-Request-Id: ${requestId}`,
    `X-Deckhand-Version: ${VERSION}`,
    `${REASON_HEADER}: ${isOverLimit ? 'over_rate_limit' : 'malformed_request'}`,
    ...Object.entries(limitHeaders(counted)).map(([name, value]) => `${name}: ${value}`),
    ...(isOverLimit ? [`Retry-After: ${counted.retryAfterSeconds}`] : []),
    '',
    text,
  ].join('\r\n');
}
