import { isDeepStrictEqual } from 'node:util';
import superjson, { type SuperJSONResult } from 'superjson';
import { z } from 'zod';
import { findProcedure } from '../../server/api/procedures.ts';

type Sent = { result?: { data: SuperJSONResult } };

/** How the results of an RPC answer violate their models: a field that the model lacks, or a value of another type. */
export function rpcViolations(path: string, text: string): string[] {
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

/** A valid result stays the same when its model encodes it. */
function differences(name: string, model: z.ZodType, result: unknown): string[] {
  const encoded = z.safeEncode(model, result as never);
  if (!encoded.success) return [`${name}: ${z.prettifyError(encoded.error)}`];
  const isSame = isDeepStrictEqual(encoded.data, result);
  return isSame ? [] : [`${name}: the model lacks a field of ${JSON.stringify(result)}`];
}
