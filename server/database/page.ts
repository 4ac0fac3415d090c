import { type SelectQueryBuilder, sql } from 'kysely';
import { z } from 'zod';
import { invalid } from '../../shared/errors.ts';
import type { Page } from '../../shared/paging.ts';

/** A page of a list, named after its rows: `{ tags: [...], next_cursor }`. */
type PageOf<Name extends string, Row> = { [Key in Name]: Row[] } & { next_cursor: string | null };

/** A column of the row, also with the alias of its table: `id`, `m.user_id`. */
type Column<Row> = (keyof Row & string) | `${string}.${keyof Row & string}`;

/** Reads a page of rows in the order of integer columns that are unique together. */
export async function readPage<Name extends string, Tables, Table extends keyof Tables, Row extends object>(
  name: Name,
  rows: SelectQueryBuilder<Tables, Table, Row>,
  { cursor, limit }: Page,
  key: Column<Row>[] = ['id'] as Column<Row>[],
  direction: 'asc' | 'desc' = 'asc',
): Promise<PageOf<Name, Row>> {
  const last = readCursor(cursor, key.length);
  const columns = key.map((column) => sql.ref(column));
  const isAfter = direction === 'asc' ? sql`>` : sql`<`;
  const found = await columns
    .reduce((all, column) => all.orderBy(column, direction), rows)
    .$if(last.length > 0, (all) => all.where(sql<boolean>`(${sql.join(columns)}) ${isAfter} (${sql.join(last)})`))
    .limit(limit + 1)
    .execute();
  return toPage(name, found as Row[], limit, key);
}

/**
 * Builds a page from rows that were read with `limit` plus one, to know whether there is a next page. If the rows were cut to the
 * maximum size of a response, `found` is their number before the cut.
 */
export function toPage<Name extends string, Row extends object>(
  name: Name,
  rows: (Row & { found?: number })[],
  limit: number,
  key: Column<Row>[] = ['id'] as Column<Row>[],
): PageOf<Name, Row> {
  const count = rows[0]?.found ?? rows.length;
  const page = rows.slice(0, limit).map(({ found, ...row }) => row as Row);
  const last = count > page.length ? page.at(-1) : undefined;
  const next_cursor = last ? toCursor(key.map((column) => Number(last[withoutAlias(column)]))) : null;
  return { [name]: page, next_cursor } as PageOf<Name, Row>;
}

const withoutAlias = <Row>(column: Column<Row>) => column.replace(/^.*\./, '') as keyof Row;

/** A cursor is the key of the last row of a page, as text that only the service reads. */
export const toCursor = (key: number[]): string => Buffer.from(JSON.stringify(key)).toString('base64url');

/** Decodes a cursor with `length` columns, of the type `int` or `bigint`; empty without a cursor. */
export function readCursor(
  cursor: string | null | undefined,
  length: number,
  column: z.ZodType<number> = z.int32(),
): number[] {
  if (cursor == null) return [];
  const key = Cursor.pipe(z.array(column)).safeParse(cursor);
  if (!key.success || key.data.length !== length)
    throw invalid({ cursor: 'is invalid: send `next_cursor` of the previous page' }, 'cursor_invalid');
  return key.data;
}

const Cursor = z.string().transform((text, context) => {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    context.addIssue('is not readable');
    return z.NEVER;
  }
});
