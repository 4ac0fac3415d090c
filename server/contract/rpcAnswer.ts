import { isDeepStrictEqual } from 'node:util';
import superjson, { type SuperJSONResult } from 'superjson';
import { z } from 'zod';
import { REASONS, type Reason } from '../../shared/reasons.ts';
import { findProcedure, type Procedure } from '../api/procedures.ts';
import { reasonsOf } from '../api/reasons.ts';
import { pageViolations } from './event.ts';

/** The status is compared if it is given. New events have all fields. */
type Expected = { status?: number; isNew?: boolean };

type Sent = { result?: { data: SuperJSONResult }; error?: SuperJSONResult };

/**
 * How an RPC answer differs from what it should be: a result that lacks a field of its model, or has another one or another
 * type, an error without the fields that clients read, or with more of them.
 */
export function rpcViolations(path: string, text: string, { status, isNew = false }: Expected = {}): string[] {
  if (text === '') return [];
  const parsed = parsedText(text);
  if (parsed === undefined) return ['The body is not JSON.'];
  const isSingle = !Array.isArray(parsed);
  return path
    .replaceAll('%2C', ',')
    .split(',')
    .flatMap((name, index) => {
      // A batch that is refused as a whole has one error.
      const { result, error } = (isSingle ? parsed : parsed[index]) ?? {};
      const procedure = findProcedure(name);
      if (error) return errorDifferences(superjson.deserialize(error), procedure, isSingle ? status : undefined);
      if (status !== undefined && !result) return [`${name}: there is neither a result nor an error.`];
      if (!procedure || !result) return [];
      const wrongStatus =
        isSingle && status !== undefined && status !== 200 ? ['A result must have the status 200.'] : [];
      const events = name === 'events.list' ? pageViolations(result.data.json, { isNew }) : [];
      return [...wrongStatus, ...events, ...differences(name, procedure.output, superjson.deserialize(result.data))];
    });
}

function parsedText(text: string): Sent | Sent[] | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error of a call, as the errorFormatter of server/api/trpc.ts makes it. */
const RpcError = z.strictObject({
  message: z.string(),
  code: z.int(),
  data: z.strictObject({
    code: z.string(),
    httpStatus: z.int(),
    reason: z.enum(Object.keys(REASONS)),
    path: z.string().optional(),
    errors: z.record(z.string(), z.array(z.string())).optional(),
    retryAfterSeconds: z.number().optional(),
  }),
});

function errorDifferences(error: unknown, procedure: Procedure | undefined, status: number | undefined): string[] {
  const { data, error: wrong } = RpcError.safeParse(error);
  if (wrong) {
    const fields = wrong.issues.flatMap(({ path, ...issue }) =>
      'keys' in issue ? issue.keys.map((key) => [...path, key].join('.')) : [path.join('.')],
    );
    return [`The error is not as expected in ${fields.join(', ')}.`];
  }
  const { httpStatus, reason } = data.data;
  return [
    ...(status === undefined || status === httpStatus ? [] : [`httpStatus is ${httpStatus}.`]),
    ...(procedure ? foreignReason(procedure, reason as Reason) : []),
  ];
}

/** The client's types have the reasons of each procedure. */
export function foreignReason(procedure: Procedure, reason: Reason): string[] {
  if (reasonsOf(procedure).includes(reason)) return [];
  return [`${procedure.name}: the reason ${reason} is missing in its router: .meta({ reasons: […] })`];
}

/** A valid result stays the same when its model encodes it. */
function differences(name: string, model: z.ZodType, result: unknown): string[] {
  const encoded = z.safeEncode(model, result as never);
  if (!encoded.success) return [`${name}: ${z.prettifyError(encoded.error)}`];
  const isSame = isDeepStrictEqual(encoded.data, result);
  return isSame ? [] : [`${name}: the model lacks a field of ${JSON.stringify(result)}`];
}
