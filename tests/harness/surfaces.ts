import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { z } from 'zod';
import type { Procedure } from '../../server/api/procedures.ts';
import { SENT_AS_TEXT } from '../../shared/fields.ts';
import type { TestCaller } from './caller.ts';

/** The outcome of a call, in the same form for both surfaces: the error, or the data. */
export type Outcome = { status?: number; reason?: string | null; message?: string; errors?: object; data?: unknown };

export type Surface = (caller: TestCaller, procedure: Procedure, input: unknown, key?: string) => Promise<Outcome>;

/** The specified fields of each error body; a key with the name of an operation is for that one only. */
const BODIES: Record<string, string[]> = {
  400: ['error', 'message', 'data'],
  401: ['error', 'message'],
  403: ['error', 'message'],
  404: ['error', 'message', 'data'],
  422: ['message', 'errors'],
  429: ['error', 'message'],
  500: ['error', 'message', 'data'],
  'auth.authenticate 400': ['error', 'message'],
  'auth.authenticate 500': ['error', 'message'],
  'cards.delete 403': ['error', 'message', 'data'],
  'groups.update 403': ['error', 'message', 'data'],
  'subscriptions.upgradeTrial 401': ['message'],
  'subscriptions.upgradeTrial 403': ['error', 'message', 'data'],
};

/** With an idempotency key, as the client sends it over RPC; also checks the status and the fields of the body. */
export const overRest: Surface = async (caller, { name, rest, output }, input, key = randomUUID()) => {
  const { status, body, headers } = await caller.post(rest!.path, input, { 'Idempotency-Key': key });
  if (status < 400) {
    expect(status).toBe(rest!.status);
    return { data: asTyped(output, body.data) };
  }
  expect(Object.keys(body), `${status}`).toEqual(BODIES[`${name} ${status}`] ?? BODIES[status]);
  expect(body.error).not.toBe(false);
  return { status, reason: headers.get('x-error-reason'), message: body.message, errors: body.errors };
};

export const overRpc: Surface = async (caller, { name, type }, input, idempotencyKey) => {
  const [router, procedure] = name.split('.') as [string, string];
  const call = (caller.rpc as any)[router][procedure][type === 'query' ? 'query' : 'mutate'];
  try {
    const result = await call(input, { idempotencyKey });
    return { data: result === undefined ? [] : JSON.parse(JSON.stringify(result)) };
  } catch (error: any) {
    if (!error.data) throw error;
    const { httpStatus: status, reason, errors } = error.data;
    return { status, reason, message: error.message, errors };
  }
};

/** Sends a call that both surfaces refuse in the same words. */
export const refusedByBoth: Surface = async (caller, procedure, input, key) => {
  const rest = await overRest(caller, procedure, input, key);
  // Not in one batch: many large inputs would be too large for one request.
  const rpc = await overRpc(caller.alone(), procedure, input, key);
  expect({ input, outcome: rpc }).toEqual({ input, outcome: rest });
  return rest;
};

/** Parses what REST sends as JSON text. */
function asTyped(schema: z.ZodType, value: any): any {
  if (z.globalRegistry.get(schema)?.[SENT_AS_TEXT] !== undefined) return JSON.parse(value);
  if (schema instanceof z.ZodArray)
    return value.map((element: unknown) => asTyped(schema.element as z.ZodType, element));
  if (!(schema instanceof z.ZodObject)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, part]) => [field, asTyped(schema.shape[field], part)]));
}
