import { sql } from 'kysely';

/** By the clock of the database, the same on every node: when the transaction began. */
export const NOW = sql<Date>`now()`;

/** PostgreSQL's number for `timestamptz`. */
export const TIMESTAMPTZ = 1184;

/**
 * Reads PostgreSQL's text of a moment, such as `2026-01-31 09:30:00.5+00`. Spelt out for the engine: by guess it would take
 * the year 0001 for 2001.
 */
export function parseMoment(text: string): Date {
  const offset = text.endsWith('+00') ? 'Z' : text.slice(-3).replace(/^[+-]\d\d$/, '$&:00');
  return new Date(`${text.slice(0, 10)}T${text.slice(11, -3)}${offset}`);
}
