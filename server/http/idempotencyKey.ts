import type { FastifyReply, FastifyRequest } from 'fastify';
import { badRequest } from '../../shared/errors.ts';
import type { Context, IdempotencyKeys } from '../domain/access/context.ts';
import { counted } from '../runtime/count.ts';

const VALID_KEY = /^[\x20-\x7e]{1,255}$/;

/** The keys in the header of a request. A batch has a list with a place for each call, which may be empty. */
export function readKeys({ headers }: FastifyRequest, batchOf: number | undefined): IdempotencyKeys | undefined {
  const header = headers['idempotency-key'] as string | undefined;
  if (header === undefined) return undefined;
  return { keys: batchOf === undefined ? [readKey(header)] : readList(header, batchOf), replayed: [] };
}

/** The key of a call whose protocol has another place for it; anything but a text is invalid. */
export const keyOfCall = (key: unknown): IdempotencyKeys | undefined =>
  key === undefined ? undefined : { keys: [readKey(typeof key === 'string' ? key : '')], replayed: [] };

function readList(header: string, calls: number): IdempotencyKeys['keys'] {
  const listed = header.split(',').map((key) => key.trim());
  if (listed.length === calls) return listed.map((key) => (key === '' ? undefined : readKey(key)));
  return Array(calls).fill(invalidKey(`must have ${counted(calls, 'key')}, one for each call of the batch`));
}

const readKey = (key: string) =>
  VALID_KEY.test(key) ? key : invalidKey('must have 1 to 255 printable ASCII characters');

const invalidKey = (predicate: string) => badRequest(`Idempotency-Key ${predicate}.`, 'idempotency_key_invalid');

export const REPLAYED_HEADER = 'Idempotent-Replayed';

/** Tells that a response is that of an earlier call: `true`, or the replayed batch indexes. */
export function sendReplayed(reply: FastifyReply, { idempotency }: Context, calls: number): void {
  if (!idempotency || idempotency.replayed.length === 0) return;
  const indexes = idempotency.replayed.toSorted((one, other) => one - other);
  reply.header(REPLAYED_HEADER, indexes.length === calls ? 'true' : indexes.join());
}
