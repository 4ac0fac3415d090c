import { type RawBuilder, sql } from 'kysely';

/** The start of the transaction by the database's clock, which is the same for all nodes. */
export const NOW = sql<Date>`now()`;

export const daysBefore = (time: RawBuilder<Date>, days: number) =>
  sql<Date>`${time} - make_interval(days => ${sql.lit(days)})`;

/** PostgreSQL's type id of `timestamptz`. */
export const TIMESTAMPTZ = 1184;

/**
 * Parses PostgreSQL's text of a timestamp, such as `2026-01-31 09:30:00.5+00`, by converting it to ISO 8601: V8 would read the
 * year 0001 as 2001.
 */
export function parseTimestamp(text: string): Date {
  const offset = text.endsWith('+00') ? 'Z' : text.slice(-3).replace(/^[+-]\d\d$/, '$&:00');
  return new Date(`${text.slice(0, 10)}T${text.slice(11, -3)}${offset}`);
}
