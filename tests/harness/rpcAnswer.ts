import { isDeepStrictEqual } from 'node:util';
import superjson, { type SuperJSONResult } from 'superjson';
import { z } from 'zod';
import { findProcedure } from '../../server/procedures.ts';

type Sent = { result?: { data: SuperJSONResult } };

/** What is wrong with the results in an answer of RPC: a field that its model lacks, or a value of another type. */
export function unmodelled(path: string, text: string): string[] {
  if (text === '') return [];
  const answers = [JSON.parse(text) as Sent | Sent[]].flat();
  return path
    .replaceAll('%2C', ',')
    .split(',')
    .flatMap((name, index) => {
      const procedure = findProcedure(name);
      const sent = answers[index]?.result?.data;
      return procedure && sent ? differences(name, procedure.output, superjson.deserialize(sent)) : [];
    });
}

/** A result is what its model makes of it: dates are dates, and nothing is left out. */
function differences(name: string, model: z.ZodType, result: unknown): string[] {
  const encoded = z.safeEncode(model, result as never);
  if (!encoded.success) return [`${name}: ${z.prettifyError(encoded.error)}`];
  return isDeepStrictEqual(encoded.data, result)
    ? []
    : [`${name}: the model lacks a field of ${JSON.stringify(result)}`];
}
