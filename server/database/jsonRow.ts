import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';

/**
 * The JSON of a row as in responses, written by PostgreSQL; `derived` are the fields that are no columns. Field by field, since
 * `row_to_json` looks up the type of each field again in each row.
 */
export function jsonOf(
  alias: string,
  model: z.ZodObject,
  derived: Record<string, RawBuilder<unknown>> = {},
): RawBuilder<string> {
  const fields = Object.entries(model.shape).map(([name, field], at) => {
    const value = jsonValueOf(field as z.ZodType, derived[name] ?? sql.ref(`${alias}.${name}`));
    return sql`${sql.lit(`${at === 0 ? '{' : ','}"${name}":`)}, ${value}`;
  });
  return sql`concat(${sql.join(fields)}, '}')`;
}

function jsonValueOf(field: z.ZodType, value: RawBuilder<unknown>): RawBuilder<unknown> {
  if (field instanceof z.ZodNullable)
    return sql`coalesce(${jsonValueOf(field.unwrap() as z.ZodType, value)}::text, 'null')`;
  if (field instanceof z.ZodNumber) return value;
  if (field instanceof z.ZodBoolean) return sql`(${value})::text`;
  return field instanceof z.ZodCodec ? sql`('"' || ${isoText(value)} || '"')` : sql`to_json(${value})`;
}

const isoText = (timestamp: RawBuilder<unknown>) =>
  sql`to_char(${timestamp} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
