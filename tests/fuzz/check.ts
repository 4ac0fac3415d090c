import { z } from 'zod';
import type { Schema } from '../../server/api/openapi/example.ts';
import { findProcedure, restProcedures } from '../../server/api/procedures.ts';
import { undocumented } from '../../server/contract/answer.ts';
import { document, violations } from '../../server/contract/violations.ts';
import { REASONS } from '../../shared/reasons.ts';
import { decoded } from './path.ts';
import type { FuzzRequest, SocketRequest } from './request.ts';
import type { FuzzAnswer } from './send.ts';

/** Everything that is wrong with an answer, regardless of what was sent. */
export function faultsOf(request: FuzzRequest, answer: FuzzAnswer): string[] {
  return [
    ...(answer.status >= 500 ? [`The status is ${answer.status}.`] : []),
    ...(request.surface === 'rest' ? restFaults(request, answer) : []),
    ...(request.surface === 'rpc' ? rpcFaults(request, answer) : []),
    ...(request.surface === 'mcp' ? messageFaults(request, answer) : []),
    ...(request.surface === 'other' && !answer.headers.has('x-request-id') ? ['X-Request-Id is missing.'] : []),
  ];
}

/** For raw bytes: the expected number of answers, and the usual error body for malformed requests. */
export function socketFaultsOf({ answers: expected, isRefused }: SocketRequest, answers: FuzzAnswer[]): string[] {
  const faults = answers.length === expected ? [] : [`There are ${answers.length} answers instead of ${expected}.`];
  for (const { status, headers, text } of answers) {
    faults.push(...limitFaults(headers, status));
    if (status >= 500) faults.push(`The status is ${status}.`);
    if (!isRefused) continue;
    if (status !== 400) faults.push(`The status is ${status} instead of 400.`);
    if (!Object.hasOwn(REASONS, headers.get('x-error-reason') ?? '')) faults.push('The reason is missing or unknown.');
    if (headers.get('connection') !== 'close') faults.push('The connection is kept.');
    faults.push(...shapeFaults(REFUSED, text));
  }
  return faults;
}

const REFUSED = {
  type: 'object',
  required: ['error', 'message', 'data'],
  properties: {
    error: { const: true },
    message: { type: 'string', minLength: 1 },
    data: { type: 'array', maxItems: 0 },
  },
};

function restFaults({ method, path }: FuzzRequest, { status, headers, text }: FuzzAnswer): string[] {
  const documentedPath = decoded(path.split('?', 1)[0]!).slice('/api'.length);
  try {
    return undocumented({ method, path: documentedPath, response: { status, headers }, text });
  } catch (error) {
    return [`The body can't be read: ${(error as Error).message}`];
  }
}

function limitFaults(headers: Headers, status: number): string[] {
  const limits = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
  const wanted = [...limits, ...(status === 429 ? ['Retry-After'] : [])];
  const wrong = wanted.filter((name) => !/^\d+$/.test(headers.get(name) ?? ''));
  const others = ['X-Request-Id', 'X-Deckhand-Version', ...(status === 401 ? ['WWW-Authenticate'] : [])];
  const missing = [...wrong, ...others.filter((name) => !headers.has(name))];
  return missing.map((name) => `The header ${name} is missing or wrong.`);
}

/** The RPC answer to one call. */
type Reply = { result?: object; error?: { json: { data: { httpStatus: number } } } };

function rpcFaults({ method, operations, path }: FuzzRequest, { status, headers, text }: FuzzAnswer): string[] {
  const faults = limitFaults(headers, status);
  if (method === 'HEAD') return faults;
  if (headers.get('content-type') === 'application/jsonl') return [...faults, ...streamFaults(text)];
  if (!/^application\/json(;|$)/.test(headers.get('content-type') ?? ''))
    faults.push('The body is not JSON by its type.');
  const shape = shapeFaults(REPLIES, text);
  if (shape.length > 0) return [...faults, ...shape];

  const body: Reply | Reply[] = JSON.parse(text);
  const replies = [body].flat();
  const isBatch = /[?&]batch=1(&|$)/.test(path);
  if (Array.isArray(body) && !(isBatch && replies.length === operations.length)) {
    faults.push(`There are ${replies.length} replies to ${operations.length} calls.`);
  }
  const statuses = replies.map(({ error }) => error?.json.data.httpStatus ?? 200);
  for (const [at, replied] of statuses.entries()) {
    const called = Array.isArray(body) ? [operations[at]!] : operations;
    const allowed = isAnswering(method, called) ? statusesOf(called) : NOT_ALLOWED;
    if (!allowed.includes(replied)) faults.push(`Call ${at} answers ${replied}, which is not documented for it.`);
    if (replied === 429 && !headers.has('retry-after')) faults.push('The header Retry-After is missing.');
  }
  if (status !== 207 && !statuses.includes(status)) faults.push(`The status is ${status}, of calls ${statuses}.`);
  return faults;
}

function messageFaults({ operations }: FuzzRequest, { status, headers, text }: FuzzAnswer): string[] {
  const faults = limitFaults(headers, status);
  if (text === '') return faults;
  const shape = shapeFaults(MESSAGE, text);
  if (shape.length > 0) return [...faults, ...shape];
  const { result } = JSON.parse(text) as { result?: { isError?: true; structuredContent?: Refused } };
  const refused = result?.isError && result.structuredContent?.error?.status;
  if (refused && !statusesOf(operations).includes(refused))
    faults.push(`The tool answers ${refused}, which is not documented for its operation.`);
  return faults;
}
type Refused = { error?: { status: number } };

const MESSAGE: Schema = {
  anyOf: [
    z.object({
      result: z.object({
        content: z.array(z.object({ type: z.literal('text'), text: z.string().min(1) })).min(1),
        structuredContent: z.record(z.string(), z.unknown()).optional(),
        isError: z.literal(true).optional(),
      }),
    }),
    z.object({ error: z.object({ code: z.int(), message: z.string().min(1), data: z.unknown().optional() }) }),
  ].map((schema) => z.toJSONSchema(schema.extend({ jsonrpc: z.literal('2.0'), id: z.unknown() })) as Schema),
};

function streamFaults(text: string): string[] {
  const faults = text
    .trimEnd()
    .split('\n')
    .flatMap((line) => shapeFaults(LINE, line));
  return text.includes('"httpStatus":500') ? [...faults, 'A call of the stream has the status 500.'] : faults;
}
const LINE: Schema = { type: 'object', required: ['json'] };

/** Only queries are answered over GET. */
function isAnswering(method: string, operations: string[]): boolean {
  if (method !== 'GET') return method === 'POST';
  return !operations.some((name) => findProcedure(name)?.type === 'mutation');
}
/** A batch with queries and mutations is a 400 with either method. */
const NOT_ALLOWED = [400, 404, 405, 429];

/** The allowed statuses of calls: the documented ones, or the usual ones for calls without a REST path. */
function statusesOf(operations: string[]): number[] {
  const documentedFor = operations.flatMap((name) => {
    const path = restProcedures.find((procedure) => procedure.name === name)?.rest.path;
    const documented =
      path === undefined ? OF_EVERY_CALL : Object.keys(document.paths[path]!.post.responses).map(Number);
    return documented.filter((status) => status >= 400 && status < 500);
  });
  return [200, ...OF_PROTOCOL, ...documentedFor];
}
const OF_EVERY_CALL = [400, 401, 403, 404, 422, 429];
/** Unreadable input, and an unknown procedure. */
const OF_PROTOCOL = [400, 404];

const REPLY: Schema = {
  anyOf: [
    z.object({ result: z.object({ data: z.record(z.string(), z.unknown()).optional() }) }),
    z.object({
      error: z.object({
        json: z.object({
          message: z.string().min(1),
          code: z.int(),
          data: z.object({
            code: z.string(),
            httpStatus: z.int(),
            reason: z.enum(Object.keys(REASONS)),
            path: z.string().nullish(),
            errors: z.record(z.string(), z.unknown()).nullish(),
            retryAfterSeconds: z.int().nullish(),
          }),
        }),
        meta: z.unknown().optional(),
      }),
    }),
  ].map((schema) => z.toJSONSchema(schema) as Schema),
};
const REPLIES: Schema = { anyOf: [REPLY, { type: 'array', items: REPLY }] };

function shapeFaults(schema: Schema, text: string): string[] {
  try {
    return violations(schema, JSON.parse(text));
  } catch {
    return ['The body is not JSON.'];
  }
}
