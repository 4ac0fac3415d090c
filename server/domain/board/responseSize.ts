import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import { badRequest } from '../../../shared/errors.ts';
import { jsonOf } from '../../database/jsonRow.ts';
import { LARGEST_RESPONSE_BYTES } from '../../limits/unsentResponses.ts';
import { longTexts } from './columns.ts';

/** Limits the size of responses in SQL, before rows leave the database: pg crashes the process on a value of 512 MiB. */

/** The approximate size of a row without its long texts. */
const BYTES_OF_OTHERS = { boards: 400, groups: 400, cards: 700, comments: 300 };

type Sized = keyof typeof BYTES_OF_OTHERS;

/** The approximate size of a row without JSON escapes, from lengths alone: long texts are not read. */
export const bytesOf = (table: Sized, alias: string) =>
  sql.raw<number>(sizeOf(table, (text) => `octet_length(${alias}.${text})`));

/** The smallest number of rows that can't fit into one response, or into `bytes` of it, even with empty texts. */
export const tooManyRows = (table: Sized, bytes = LARGEST_RESPONSE_BYTES) =>
  Math.floor(bytes / BYTES_OF_OTHERS[table]) + 1;

/** Plain text instead of nested `sql` templates, which take longer to compile. */
function sizeOf(table: Sized, lengthOf: (text: string) => string): string {
  const lengths = longTexts(table).map((text) => `coalesce(${lengthOf(text)}, 0)`);
  return `(${[BYTES_OF_OTHERS[table], ...lengths].join(' + ')})`;
}

/** JSON escapes make a text at most six times as long. */
const LONGEST_ESCAPE = 6;

/** Rows of this size fit, even if every character must be escaped. */
const SURELY_FITTING_BYTES = Math.floor(LARGEST_RESPONSE_BYTES / LONGEST_ESCAPE);

const escapedSizeOf = (table: Sized) => sizeOf(table, (text) => `octet_length(to_json(${text})::text)`);

/** The approximate size of a row as JSON. Escapes are counted only if `bytes_of_all` leaves too little room for them. */
function jsonBytesOf(table: Sized): RawBuilder<number> {
  return sql.raw(`case when bytes_of_all <= ${SURELY_FITTING_BYTES} then bytes else ${escapedSizeOf(table)} end`);
}

type NamesOf<Found> = readonly (keyof Found & string)[];
const listOf = (columns: readonly string[]) => sql.raw(columns.join(', '));

/**
 * Cuts a page of a table to the maximum size of a response, but keeps at least one row. `rows` need a column `bytes` and are
 * ordered by `key`; `found` is the number of rows before the cut. Texts are read only after a first cut by their lengths.
 */
export function cutToResponseSize<Found>(
  table: Sized,
  rows: RawBuilder<Found>,
  columns: NamesOf<Found>,
  key: NamesOf<Found>,
): RawBuilder<Found & { found: number }> {
  const before = sql`over (order by ${listOf(key)} rows between unbounded preceding and 1 preceding)`;
  return sql`
    select ${listOf(columns)}, found from (
      select page.*, sum(${jsonBytesOf(table)}) ${before} as json_before from (
        select page.*, count(*) over ()::int as found, sum(bytes) over () as bytes_of_all, sum(bytes) ${before} as bytes_before
        from (${rows}) as page
      ) as page where coalesce(bytes_before, 0) < ${sql.lit(LARGEST_RESPONSE_BYTES)}
    ) as page
    where coalesce(json_before, 0) < ${sql.lit(LARGEST_RESPONSE_BYTES)} order by ${listOf(key)}`;
}

/**
 * All rows of a table, or only the first one if they are too large for one response: `mustFitResponse` then throws. Escapes are
 * counted only if they decide.
 */
export function allOrFirstRow<Found>(
  table: Sized,
  rows: RawBuilder<Found>,
  columns: NamesOf<Found>,
  key: NamesOf<Found>,
): RawBuilder<Found & { is_too_large: boolean }> {
  return sql`
    with ${listAndSize(table, rows)}
    select ${listOf(columns)}, (select is_too_large from size) as is_too_large from list
    order by ${listOf(key)} limit case when (select is_too_large from size) then 1 end`;
}

function listAndSize(table: Sized, rows: RawBuilder<unknown>): RawBuilder<unknown> {
  const largest = sql.lit(LARGEST_RESPONSE_BYTES);
  return sql`
    list as materialized (${rows}), size as materialized (
      select case when bytes <= ${sql.lit(SURELY_FITTING_BYTES)} then false when bytes > ${largest} then true
        else (select sum(${sql.raw(escapedSizeOf(table))}) > ${largest} from list) end as is_too_large
      from (select coalesce(sum(bytes), 0) as bytes from list) as unescaped
    )`;
}

/** The same rows as one JSON text in one row, with their number; null if they are too large. */
export function allAsJson(
  table: Sized,
  rows: RawBuilder<unknown>,
  model: z.ZodObject,
  key: readonly string[],
  more: { parts: RawBuilder<unknown>; columns: RawBuilder<unknown> },
): RawBuilder<{ json: string; count: number; is_too_large: boolean }> {
  return sql`
    with ${more.parts}${listAndSize(table, rows)}
    select ${more.columns}, size.is_too_large, listed.json, listed.count
    from size cross join lateral (
      select '[' || coalesce(string_agg(${jsonOf('list', model)}, ',' order by ${listOf(key)}), '') || ']' as json,
        count(*)::int as count
      from list where not size.is_too_large
    ) as listed`;
}

export function mustFitResponse(first: { is_too_large: boolean } | undefined, message: string): void {
  if (first?.is_too_large) throw badRequest(message, 'answer_too_large');
}
