import superjson, { type SuperJSONResult } from 'superjson';
import { z } from 'zod';
import { SENT_AS_TEXT } from '../../shared/fields.ts';
import type { Procedure } from '../api/procedures.ts';

/** The outcome of a call, in the same form for all surfaces: the error, or the data with the version of its row. */
export type Outcome = { status?: number; reason?: string | null; message?: string; errors?: object; data?: unknown };

type RestAnswer = { status: number; headers: Headers; body: RestBody };
type RestBody = { message?: string; errors?: object; data?: unknown };

type Called = Pick<Procedure, 'type' | 'output' | 'isVersioned'>;

/** Over REST, the version is a header. */
export function restOutcome(called: Called, { status, headers, body }: RestAnswer): Outcome {
  if (status < 400) {
    const data = asTyped(called.output, body.data);
    const version = headers.get('etag')?.replace(/^W\//, '').slice(1, -1);
    return resultOf(called, called.isVersioned ? { ...(data as object), version } : data);
  }
  return { status, reason: headers.get('x-error-reason'), message: body.message, errors: body.errors };
}

type RpcAnswer = { result?: { data: SuperJSONResult }; error?: SuperJSONResult };

/** The outcome of a single RPC call, outside a batch. */
export function rpcOutcome(called: Called, { result, error }: RpcAnswer): Outcome {
  return error ? rpcError(superjson.deserialize(error)) : rpcResult(called, superjson.deserialize(result!.data));
}

/** An operation without a result sends an empty list over REST. */
export const rpcResult = (called: Called, result: unknown): Outcome =>
  resultOf(called, result === undefined ? [] : JSON.parse(JSON.stringify(result)));

/** Hides the version after a change, which differs from call to call. */
export function resultOf({ type, isVersioned }: Called, data: unknown): Outcome {
  if (!isVersioned || type === 'query') return { data };
  const { version, ...row } = data as { version?: string };
  return { data: { ...row, version: /^\d+-\d+$/.test(version ?? '') ? 'a new version' : version } };
}

type RpcError = { message: string; data: { httpStatus?: number; reason?: string; errors?: object } };

export function rpcError({ message, data }: RpcError): Outcome {
  const { httpStatus: status, reason, errors } = data;
  return { status, reason, message, errors };
}

/** Parses what REST sends as JSON text. */
function asTyped(schema: z.ZodType | undefined, value: unknown): unknown {
  // A field of a later version.
  if (!schema) return value;
  if (z.globalRegistry.get(schema)?.[SENT_AS_TEXT] !== undefined) return JSON.parse(value as string);
  if (schema instanceof z.ZodArray)
    return (value as unknown[]).map((element) => asTyped(schema.element as z.ZodType, element));
  if (!(schema instanceof z.ZodObject)) return value;
  const fields = Object.entries(value as object);
  return Object.fromEntries(fields.map(([field, part]) => [field, asTyped(schema.shape[field], part)]));
}

/** For comparing the results of two calls: a copy that hides new timestamps, random ids and secrets. `known` has earlier values. */
export function comparable(value: unknown, known: string, readToken?: (token: string) => unknown): unknown {
  const text = JSON.stringify(value, (key, part) => {
    if (OF_THE_CALL.has(key)) return 'of the call';
    if (typeof part !== 'string' || known.includes(part)) return part;
    if (key === 'token' && readToken) return readToken(part);
    if (RANDOM.has(key)) return 'a new secret';
    if (key.endsWith('_at') || key === 'hold_until') return 'a new time';
    return part.replace(UUID, (uuid) => (known.includes(uuid) ? uuid : 'a new id'));
  });
  return JSON.parse(text);
}

/** What tells calls apart in events, and the place in the feed, which moves on with each transaction. */
const OF_THE_CALL = new Set(['surface', 'request_id', 'transaction_id', 'after_transaction', 'cursor']);

const UUID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;

/** Fields with new random values; the last three are those of an idempotency key. */
const RANDOM = new Set([
  'password_hash',
  'secret',
  'secret_hash',
  'previous_secret',
  'previous_hash',
  'otpauth_uri',
  'qr_svg',
  'totp_pending_secret',
  'key',
  'answer',
  'held_until',
]);

/** The first place where two outcomes differ, with both values; undefined if they are equal. */
export function firstDifference(rest: unknown, rpc: unknown, place = ''): string | undefined {
  const parts = [rest, rpc].map((value) =>
    typeof value === 'object' && value !== null ? (value as object) : undefined,
  );
  const [one, other] = parts as [Record<string, unknown>?, Record<string, unknown>?];
  if (!one || !other || Array.isArray(one) !== Array.isArray(other))
    return Object.is(rest, rpc) ? undefined : `${place || 'the answer'}: REST ${shown(rest)}, RPC ${shown(rpc)}`;
  return [...new Set([...Object.keys(one), ...Object.keys(other)])]
    .map((name) => firstDifference(one[name], other[name], place ? `${place}.${name}` : name))
    .find((difference) => difference !== undefined);
}

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
}
const LONGEST_SHOWN = 80;
