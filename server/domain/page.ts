import { z } from 'zod';
import { invalid } from '../errors.ts';

/** Where a list goes on: the key of the last row that was answered. It is text for callers, and only we read it. */
export function readCursor(cursor: string | null | undefined, length: number): number[] | undefined {
  if (cursor == null) return undefined;
  const key = Cursor.safeParse(cursor);
  if (!key.success || key.data.length !== length) throw invalid({ cursor: 'is none that a list answered' });
  return key.data;
}

const Cursor = z
  .string()
  .transform((text, context) => {
    try {
      return JSON.parse(Buffer.from(text, 'base64url').toString());
    } catch {
      context.addIssue('is not readable');
      return z.NEVER;
    }
  })
  .pipe(z.array(z.int32()));

/** One row more than asked for was looked up: it tells whether there is a next page. `found` counts rows that were cut off, too. */
export function toPage<Row>(
  rows: Row[],
  limit: number,
  keyOf: (row: Row) => number[],
  found = rows.length,
): { rows: Row[]; next_cursor: string | null } {
  const page = rows.slice(0, limit);
  const last = found > page.length ? page.at(-1) : undefined;
  return { rows: page, next_cursor: last ? toCursor(keyOf(last)) : null };
}

export const toCursor = (key: number[]): string => Buffer.from(JSON.stringify(key)).toString('base64url');
