import { type RawBuilder, sql } from 'kysely';
import type { Row, TableName } from '../database/tables.ts';
import { badRequest } from '../errors.ts';
import { LARGEST_ANSWER_BYTES } from '../limits/answerBudget.ts';

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

/** The approximate size of a row in an answer, computed from lengths without reading long texts. */
export function bytesOf(table: keyof typeof SIZES, alias: string): RawBuilder<number> {
  const { texts, others } = SIZES[table];
  const lengths = texts.map((text) => sql`coalesce(octet_length(${sql.ref(`${alias}.${text}`)}), 0)`);
  return sql`(${sql.lit(others)} + ${sql.join(lengths, sql` + `)})::bigint`;
}

type NamesOf<Found> = readonly (keyof Found & string)[];
const namesOf = (columns: readonly string[]) => sql.join(columns.map((column) => sql.ref(column)));

/**
 * Cuts a page to the maximum size of an answer, but keeps at least one row. `rows` need a column `bytes` and are ordered by
 * `key`; `found` is the number of rows before the cut.
 */
export function cutToAnswerSize<Found>(
  rows: RawBuilder<Found>,
  columns: NamesOf<Found>,
  key: NamesOf<Found>,
): RawBuilder<Found & { found: number }> {
  const order = namesOf(key);
  return sql`
    select ${namesOf(columns)}, found from (
      select page.*, count(*) over ()::int as found,
        sum(bytes) over (order by ${order} rows between unbounded preceding and 1 preceding) as bytes_before
      from (${rows}) as page
    ) as page
    where coalesce(bytes_before, 0) < ${sql.lit(LARGEST_ANSWER_BYTES)} order by ${order}`;
}

/** All rows, or only the first one if they exceed an answer: `mustFitAnswer` then refuses. */
export function allOrFirstRow<Found>(
  rows: RawBuilder<Found>,
  columns: NamesOf<Found>,
  key: NamesOf<Found>,
): RawBuilder<Found & { is_too_large: boolean }> {
  const order = namesOf(key);
  return sql`
    select ${namesOf(columns)}, is_too_large from (
      select list.*, sum(bytes) over () > ${sql.lit(LARGEST_ANSWER_BYTES)} as is_too_large, row_number() over (order by ${order}) as place
      from (${rows}) as list
    ) as list
    where not is_too_large or place = 1 order by ${order}`;
}

export function mustFitAnswer(answered: { is_too_large: boolean } | undefined, message: string): void {
  if (answered?.is_too_large) throw badRequest(message, 'answer_too_large');
}
