import { TRPCError } from '@trpc/server';
import { z } from 'zod';
import { MOST_ROWS } from '../../shared/limits.ts';
import { InvalidRow, manyRows } from '../../shared/rows.ts';
import { JsonText } from '../runtime/jsonText.ts';

/**
 * Returns the parsed value, or throws. Schemas are compiled, at their first use, and parse synchronously: `parseAsync`, which tRPC
 * would call, takes up to forty times as long. So no schema may have an asynchronous check.
 */
export type Parse = (value: unknown) => unknown;

export function inputParser(schema: z.ZodType): Parse {
  const parse = parserOf(schema, (cause) => new TRPCError({ code: 'BAD_REQUEST', cause }));
  const rows = manyRows.get(schema);
  return rows ? rowParser(parse, rows) : parse;
}

export const outputParser = (schema: z.ZodType): Parse =>
  parserOf(
    returnedSchema(schema),
    (cause) => new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: 'Output validation failed', cause }),
  );

function parserOf(schema: z.ZodType, errorFor: (cause: unknown) => TRPCError): Parse {
  let compiled: z.ZodType | undefined;
  return (value) => {
    try {
      compiled ??= z.compile(schema);
      return compiled.parse(value);
    } catch (cause) {
      throw errorFor(cause);
    }
  };
}

/**
 * The parser of an input with many rows. With the mode `each`, an invalid row becomes an `InvalidRow`, and the others go on; what
 * is no list of objects is an error of the whole call in either mode.
 */
function rowParser(parse: Parse, { list, row }: { list: string; row: z.ZodType }): Parse {
  let compiled: z.ZodType | undefined;
  return (value) => {
    const sent = isObject(value) ? value[list] : undefined;
    if (!Array.isArray(sent) || !sent.every(isObject)) return parse(value);
    const input = parse({ ...(value as object), [list]: [] }) as { mode?: string | null };
    if (input.mode !== 'each' || sent.length > MOST_ROWS) return parse(value);

    compiled ??= z.compile(row);
    const { safeParse } = compiled;
    const rows = sent.map((one) => {
      const { success, data, error } = safeParse(one);
      return success ? data : new InvalidRow(error.issues);
    });
    return { ...input, [list]: rows };
  };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The schema of what a procedure returns: as documented, but an object or a list at the top may also be a text that PostgreSQL
 * has written. It is not parsed again; the tests validate its content.
 */
export function returnedSchema(documented: z.ZodType): z.ZodType {
  if (!(documented instanceof z.ZodObject)) return documented;
  const fields = Object.entries(documented.shape).filter(([, field]) => isObjectOrList(field));
  return documented.extend(Object.fromEntries(fields.map(([name, field]) => [name, z.union([jsonText, field])])));
}

const jsonText = z.instanceof(JsonText);

const isObjectOrList = (schema: unknown) => schema instanceof z.ZodObject || schema instanceof z.ZodArray;
