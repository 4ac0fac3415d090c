import type { FastifyReply, FastifyRequest } from 'fastify';
import { badRequest } from '../../shared/errors.ts';
import { findProcedure } from '../api/procedures.ts';
import type { RequestKeys } from '../domain/access/context.ts';
import { counted } from '../runtime/count.ts';

const VALID_KEY = /^[\x20-\x7e]{1,255}$/;

/** The keys in the header of a request. A batch has a list with a place for each call, which may be empty. */
export function keysOf({ headers }: FastifyRequest, { batchOf }: { batchOf?: number } = {}): RequestKeys | undefined {
  const header = headers['idempotency-key'] as string | undefined;
  if (header === undefined) return undefined;

  const listed = batchOf === undefined ? [header] : header.split(',').map((key) => key.trim());
  return {
    keyOf: (batchIndex) => {
      if (listed.length !== (batchOf ?? 1))
        throw invalidKey(`must have ${counted(batchOf!, 'key')}, one for each call of the batch`);
      const key = listed[batchIndex]!;
      if (batchOf !== undefined && key === '') return undefined;
      if (!VALID_KEY.test(key)) throw invalidKey('must have 1 to 255 printable ASCII characters');
      return key;
    },
    parseInput: async (procedure, input) => {
      const { input: schema } = findProcedure(procedure)!;
      if (!schema) return { parsed: null };
      const { success, data } = await schema.safeParseAsync(input);
      return success ? { parsed: data } : undefined;
    },
    documents422: (procedure) => findProcedure(procedure)!.rest?.errors.includes(422) ?? true,
    replayed: new Set(),
  };
}

const invalidKey = (predicate: string) => badRequest(`Idempotency-Key ${predicate}.`, 'idempotency_key_invalid');

export const REPLAYED_HEADER = 'Idempotent-Replayed';

/** Tells that an answer is that of an earlier call: `true`, or the places in a batch of which only some were repeated. */
export function sendReplayed(reply: FastifyReply, keys: RequestKeys | undefined, calls: number): void {
  if (!keys || keys.replayed.size === 0) return;
  const places = [...keys.replayed].sort((one, other) => one - other);
  reply.header(REPLAYED_HEADER, places.length === calls ? 'true' : places.join());
}
