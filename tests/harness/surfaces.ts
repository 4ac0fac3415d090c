import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { z } from 'zod';
import type { Procedure } from '../../server/api/procedures.ts';
import { type Outcome, restOutcome, resultOf, rpcError, rpcResult } from '../../server/contract/outcome.ts';
import type { TestCaller } from './caller.ts';

export type Surface = (caller: TestCaller, procedure: Procedure, input: unknown, key?: string) => Promise<Outcome>;

/** The specified fields of each error body; a key with the name of an operation is for that one only. */
const BODIES: Record<string, string[]> = {
  400: ['error', 'message', 'data'],
  401: ['error', 'message'],
  403: ['error', 'message'],
  404: ['error', 'message', 'data'],
  412: ['error', 'message', 'data'],
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

/** With an idempotency key, as the client sends it over RPC. */
export const overRest: Surface = (caller, procedure, input, key = randomUUID()) =>
  callRest(caller, procedure, input, { 'Idempotency-Key': key });

/** A key would roll back all that a refused call writes. */
export const overRestWithoutKey: Surface = (caller, procedure, input) => callRest(caller, procedure, input);

/** With `if_version` as a header; also checks the status and the fields of the body. */
async function callRest(
  caller: TestCaller,
  procedure: Procedure,
  input: unknown,
  keyHeader: Record<string, string> = {},
): Promise<Outcome> {
  const { name, rest, isVersioned } = procedure;
  const { if_version, ...fields } = (input ?? {}) as { if_version?: string };
  const condition: Record<string, string> = if_version === undefined ? {} : { 'If-Match': `"${if_version}"` };
  const sent = if_version === undefined ? input : fields;
  const answer = await caller.post(rest!.path, sent, { ...keyHeader, ...condition });
  const { status, body, headers } = answer;
  if (status < 400) {
    expect(status).toBe(rest!.status);
    expect(headers.has('etag')).toBe(isVersioned);
    if (isVersioned) expect(body.data).not.toHaveProperty('version');
  } else {
    expect(Object.keys(body), `${status}`).toEqual(BODIES[`${name} ${status}`] ?? BODIES[status]);
    expect(body.error).not.toBe(false);
  }
  return restOutcome(procedure, answer);
}

export const overRpc: Surface = async (caller, procedure, input, idempotencyKey) => {
  const { name, type } = procedure;
  const [router, called] = name.split('.') as [string, string];
  const call = (caller.rpc as any)[router][called][type === 'query' ? 'query' : 'mutate'];
  try {
    return rpcResult(procedure, await call(input, { idempotencyKey }));
  } catch (error: any) {
    if (!error.data) throw error;
    return rpcError(error);
  }
};

/** By the tool of the procedure if it has one. */
export const overMcp: Surface = async (caller, procedure, input, key = randomUUID()) => {
  const { name, isTool } = procedure;
  const meta = { idempotency_key: key };
  const called = isTool
    ? await caller.tool(name.replace('.', '_'), input, meta)
    : await caller.tool('operations_call', { name, input }, meta);
  const { result, error } = called.body;
  // Refused before the message was read.
  if (error) return { ...error.data, message: error.message };
  const { isError = false, structuredContent, content } = result;
  const [{ text }] = content;
  if (isError) {
    expect(JSON.parse(text)).toEqual(structuredContent);
    return structuredContent.error;
  }
  expect(result).toEqual({ content });
  if (procedure.output instanceof z.ZodVoid) return { data: [] };
  expect(text).not.toMatch(/":null/);
  return resultOf(procedure, withNulls(JSON.parse(text), z.toJSONSchema(procedure.output, JSON_SCHEMA)));
};

const JSON_SCHEMA = { io: 'output', unrepresentable: 'any' } as const;

/** An answer with the fields that its text leaves out since they are null. */
function withNulls(value: unknown, schema: z.core.JSONSchema.BaseSchema, all = schema): any {
  if (schema.$ref) return withNulls(value, at(all, schema.$ref), all);
  const ofType = (wanted: string) => schema.anyOf?.find(({ type }) => type === wanted) ?? schema;
  if (Array.isArray(value)) return value.map((one) => withNulls(one, ofType('array').items as typeof schema, all));
  const { properties, required = [] } = ofType('object');
  if (typeof value !== 'object' || value === null || !properties) return value;
  const names = new Set([...required, ...Object.keys(value)]);
  const fields = value as Record<string, unknown>;
  return Object.fromEntries(
    [...names].map((name) => [name, withNulls(fields[name] ?? null, (properties[name] as typeof schema) ?? {}, all)]),
  );
}
const at = (all: object, reference: string): any =>
  reference
    .slice(2)
    .split('/')
    .reduce((part: any, name) => part[name], all);

/** Sends a call that all surfaces refuse in the same words. */
export const refusedByAll: Surface = async (caller, procedure, input, key) => {
  const rest = await overRest(caller, procedure, input, key);
  // Not in one batch: many large inputs would be too large for one request.
  const rpc = await overRpc(caller.alone(), procedure, input, key);
  expect({ input, outcome: rpc }).toEqual({ input, outcome: rest });
  // Assistants are always signed in, and can't call what answers with a secret.
  if (procedure.access === 'anyone' || procedure.hasSecret) return rest;
  expect({ input, outcome: await overMcp(caller, procedure, input, key) }).toEqual({ input, outcome: rest });
  return rest;
};
