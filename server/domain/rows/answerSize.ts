import { type RawBuilder, sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import type { Row, TableName } from '../../database/tables.ts';
import { LARGEST_RESPONSE_BYTES } from '../../limits/responseBudget.ts';

/**
 * Enforces the size limit of answers in SQL, before the rows leave the database: pg can't read a value of 512 MiB, and the
 * process would crash.
 */

/** The long texts of a row, and the approximate size of its other fields. */
const SIZES = {
  boards: { texts: ['title', 'description'], others: 400 },
  groups: { texts: ['title', 'description'], others: 400 },
  cards: { texts: ['title', 'short_description', 'description'], others: 700 },
  comments: { texts: ['comment'], others: 300 },
} satisfies { [Table in TableName]?: { texts: (keyof Row<Table>)[]; others: number } };

type Sized = keyof typeof SIZES;

/** The approximate size of a row in an answer without escapes, computed from lengths without reading long texts. */
export const bytesOf = (table: Sized, alias: string) =>
  sql.raw<number>(sizeOf(table, (text) => `octet_length(${alias}.${text})`));

/** As text, since each piece of a statement takes time to compile. */
function sizeOf(table: Sized, lengthOf: (text: string) => string): string {
  const { texts, others } = SIZES[table];
  return `(${[others, ...texts.map((text) => `coalesce(${lengthOf(text)}, 0)`)].join(' + ')})`;
}

/** JSON escapes make a text at most six times as long. */
const LONGEST_ESCAPE = 6;

/**
 * The approximate size of a row as JSON. The row needs `bytes` and `bytes_of_all`: if all rows fit whatever they contain, their
 * escapes are not counted, which takes time.
 */
function jsonBytesOf(table: Sized): RawBuilder<number> {
  return sql.raw(`case when bytes_of_all <= ${Math.floor(LARGEST_RESPONSE_BYTES / LONGEST_ESCAPE)} then bytes
    else ${sizeOf(table, (text) => `octet_length(to_json(${text})::text)`)} end`);
}

type NamesOf<Found> = readonly (keyof Found & string)[];
const namesOf = (columns: readonly string[]) => sql.raw(columns.join(', '));

/**
 * Cuts a page of a table to the maximum size of an answer, but keeps at least one row. `rows` need a column `bytes` and are
 * ordered by `key`; `found` is the number of rows before the cut. Only texts that pass the first cut are read.
 */
export function cutToAnswerSize<Found>(
  table: Sized,
  rows: RawBuilder<Found>,
  columns: NamesOf<Found>,
  key: NamesOf<Found>,
): RawBuilder<Found & { found: number }> {
  const before = sql`over (order by ${namesOf(key)} rows between unbounded preceding and 1 preceding)`;
  return sql`
    select ${namesOf(columns)}, found from (
      select page.*, sum(${jsonBytesOf(table)}) ${before} as json_before from (
        select page.*, count(*) over ()::int as found, sum(bytes) over () as bytes_of_all, sum(bytes) ${before} as bytes_before
        from (${rows}) as page
      ) as page where coalesce(bytes_before, 0) < ${sql.lit(LARGEST_RESPONSE_BYTES)}
    ) as page
    where coalesce(json_before, 0) < ${sql.lit(LARGEST_RESPONSE_BYTES)} order by ${namesOf(key)}`;
}

/** All rows of a table, or only the first one if they exceed an answer: `mustFitAnswer` then refuses. */
export function allOrFirstRow<Found>(
  table: Sized,
  rows: RawBuilder<Found>,
  columns: NamesOf<Found>,
  key: NamesOf<Found>,
): RawBuilder<Found & { is_too_large: boolean }> {
  const order = namesOf(key);
  const largest = sql.lit(LARGEST_RESPONSE_BYTES);
  // Texts that are too long without escapes are not read.
  const json = sql`case when bytes_of_all > ${largest} then bytes else ${jsonBytesOf(table)} end`;
  return sql`
    select ${namesOf(columns)}, is_too_large from (
      select list.*, sum(${json}) over () > ${largest} as is_too_large, row_number() over (order by ${order}) as place
      from (select list.*, sum(bytes) over () as bytes_of_all from (${rows}) as list) as list
    ) as list
    where not is_too_large or place = 1 order by ${order}`;
}

export function mustFitAnswer(answered: { is_too_large: boolean } | undefined, message: string): void {
  if (answered?.is_too_large) throw badRequest(message, 'answer_too_large');
}
