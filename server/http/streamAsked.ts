import type { FastifyRequest } from 'fastify';

export const JSON_LINES = 'application/jsonl';

/** Whether the caller reads each result of a batch as soon as it is there, as `httpBatchStreamLink` does. */
export const asksForStream = ({ headers }: FastifyRequest) =>
  headers['trpc-accept'] === JSON_LINES || (headers.accept ?? '').split(',').some((type) => type.trim() === JSON_LINES);
