import { type RawBuilder, sql } from 'kysely';
import { type Db, oneRow, query } from './query.ts';
import { type Column, type Selected, selectionOf } from './selection.ts';
import type { TableName } from './tables.ts';

type Options = {
  /** The error if there is no such row. */
  missing?: () => Error;
  lock?: 'update' | 'no key update';
};

/** These columns of the row with an id. */
export async function rowById<Table extends TableName, const Columns extends readonly Column<Table>[]>(
  db: Db,
  table: Table,
  id: number,
  columns: Columns,
  { missing, lock }: Options = {},
): Promise<Selected<Table, Columns>> {
  const found = await query(
    db,
    sql<Selected<Table, Columns>>`
      select ${selectionOf(columns)} from ${sql.table(table)} where id = ${id} ${lock ? sql.raw(`for ${lock}`) : sql``}`,
  );
  if (found.length === 0 && missing) throw missing();
  return oneRow(found);
}

/** How many rows of a table there are, or for how many a condition holds. */
export async function countRows(db: Db, table: TableName, which: RawBuilder<unknown> = sql`true`): Promise<number> {
  const statement = sql<{ count: number }>`select count(*)::int as count from ${sql.table(table)} where ${which}`;
  return oneRow(await query(db, statement)).count;
}
