import type { FastifyReply } from 'fastify';
import type { Failure } from '../../shared/errors.ts';

export const REASON_HEADER = 'X-Error-Reason';

/** The headers of an error: its reason for programs, and when to retry. */
export function sendErrorHeaders(
  reply: FastifyReply,
  { reason, retryAfterSeconds }: Pick<Failure, 'reason' | 'retryAfterSeconds'>,
): void {
  reply.header(REASON_HEADER, reason);
  sendRetryAfter(reply, retryAfterSeconds);
}

export function sendRetryAfter(reply: FastifyReply, retryAfterSeconds: number | undefined): void {
  if (retryAfterSeconds !== undefined) reply.header('Retry-After', retryAfterSeconds);
}
