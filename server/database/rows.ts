import { type InsertObject, type RawBuilder, sql, type UpdateObject } from 'kysely';
import { type Db, oneRow, query, queryOne } from './query.ts';
import { type Column, type Selected, selectionOf } from './selection.ts';
import type { TableName, Tables } from './tables.ts';

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

/** Inserts a row, and returns these columns of it. */
export function insertRow<Table extends TableName, const Columns extends readonly Column<Table>[]>(
  db: Db,
  table: Table,
  values: InsertObject<Tables, Table>,
  columns: Columns,
): Promise<Selected<Table, Columns>> {
  const inserted = db.insertInto(table as 'users').values(values as never);
  return inserted.returning(columns as never).executeTakeFirstOrThrow() as Promise<never>;
}

/** Changes the row with an id, and returns these columns of it. */
export function updateRow<Table extends TableName, const Columns extends readonly Column<Table>[]>(
  db: Db,
  table: Table,
  id: number,
  changes: UpdateObject<Tables, Table>,
  columns: Columns,
): Promise<Selected<Table, Columns>> {
  const updated = db
    .updateTable(table as 'users')
    .set(changes as never)
    .where('id', '=', id);
  return updated.returning(columns as never).executeTakeFirstOrThrow() as Promise<never>;
}

/** How many rows of a table there are, or for how many a condition holds. */
export async function countRows(db: Db, table: TableName, which: RawBuilder<unknown> = sql`true`): Promise<number> {
  const statement = sql<{ count: number }>`select count(*)::int as count from ${sql.table(table)} where ${which}`;
  return (await queryOne(db, statement)).count;
}
