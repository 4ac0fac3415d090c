import { TRPCError } from '@trpc/server';
import { z } from 'zod';
import { MOST_ROWS } from '../../shared/limits.ts';
import { InvalidRow, manyRows } from '../../shared/rows.ts';
import { JsonText } from '../runtime/jsonText.ts';
import { type Issue, MOST_SUGGESTIONS, type Suggestions, unknownFieldsOf } from './unknownFields.ts';

/**
 * Returns the parsed value, or throws. Schemas are compiled, at their first use, and parse synchronously: `parseAsync`, which tRPC
 * would call, takes up to forty times as long. So no schema may have an asynchronous check.
 */
export type Parse = (value: unknown) => unknown;

/** Parses an input; a strict one may have no fields that the schema doesn't have, while others ignore them. */
export type ParseInput = (value: unknown, isStrict: boolean) => unknown;

export function inputParser(schema: z.ZodType): ParseInput {
  const read = readerOf(schema);
  const parse: ParseInput = (value, isStrict) => {
    const { data, issues } = read(value, isStrict ? { left: MOST_SUGGESTIONS } : undefined);
    if (issues) throw new TRPCError({ code: 'BAD_REQUEST', cause: new z.ZodRealError([...issues]) });
    return data;
  };
  const rows = manyRows.get(schema);
  return rows ? rowParser(parse, rows) : parse;
}

/** The parsed value, or what is wrong with it; with `suggestions`, unknown fields are errors, too. */
type Read = (value: unknown, suggestions: Suggestions | undefined) => { data?: unknown; issues?: readonly Issue[] };

function readerOf(schema: z.ZodType): Read {
  let compiled: z.ZodType | undefined;
  const unknownIn = unknownFieldsOf(schema);
  return (value, suggestions) => {
    compiled ??= z.compile(schema);
    const { data, error } = compiled.safeParse(value);
    const unknown = suggestions ? unknownIn(value, suggestions) : [];
    return error || unknown.length > 0 ? { issues: [...unknown, ...(error?.issues ?? [])] } : { data };
  };
}

export function outputParser(schema: z.ZodType): Parse {
  let compiled: z.ZodType | undefined;
  return (value) => {
    try {
      compiled ??= z.compile(returnedSchema(schema));
      return compiled.parse(value);
    } catch (cause) {
      throw new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: 'Output validation failed', cause });
    }
  };
}

/**
 * The parser of an input with many rows. With the mode `each`, an invalid row becomes an `InvalidRow`, and the others go on; what
 * is no list of objects is an error of the whole call in either mode.
 */
function rowParser(parse: ParseInput, { list, row }: { list: string; row: z.ZodType }): ParseInput {
  const readRow = readerOf(row);
  return (value, isStrict) => {
    const sent = isObject(value) ? value[list] : undefined;
    if (!Array.isArray(sent) || !sent.every(isObject)) return parse(value, isStrict);
    const input = parse({ ...(value as object), [list]: [] }, isStrict) as { mode?: string | null };
    if (input.mode !== 'each' || sent.length > MOST_ROWS) return parse(value, isStrict);

    const suggestions = isStrict ? { left: MOST_SUGGESTIONS } : undefined;
    const rows = sent.map((one) => {
      const { data, issues } = readRow(one, suggestions);
      return issues ? new InvalidRow(issues) : data;
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
