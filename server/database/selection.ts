import { type AliasedRawBuilder, type RawBuilder, type Selection, sql } from 'kysely';
import type { Row, TableName, Tables } from './tables.ts';

/** A column of a table, or an aliased expression. */
export type Column<Table extends TableName> = (keyof Row<Table> & string) | NamedExpression;
type NamedExpression = AliasedRawBuilder<unknown, string>;

/** The type of a row with these columns. */
export type Selected<Table extends TableName, Columns extends readonly Column<Table>[]> = Selection<
  Tables,
  Table,
  Columns[number]
>;

/** Columns for `select` or `returning` in raw SQL. */
export function selectionOf(columns: readonly (string | NamedExpression)[], alias?: string): RawBuilder<unknown> {
  const prefix = alias === undefined ? '' : `${alias}.`;
  return sql.join(columns.map((column) => (typeof column === 'string' ? sql.ref(prefix + column) : sql`${column}`)));
}

/** The name of one row: boards, board. */
export const singularOf = <Table extends string>(table: Table) =>
  table.slice(0, -1) as Table extends `${infer One}s` ? One : never;
