import type { Database } from '../database/connect.ts';
import { countDue, type Removal } from '../database/removal.ts';
import { type TableSize, tableSizes } from '../database/sizes.ts';
import { deletedRowRemovals } from '../domain/removal/deletedRows.ts';
import { removalsOf } from '../domain/removal/removals.ts';
import { counted } from '../runtime/count.ts';
import type { Given, Outcome } from './command.ts';
import { withDatabase } from './onDatabase.ts';
import { rowsAsTable } from './table.ts';

/** What a removal would free, if `DELETED_ROWS_KEPT_DAYS` is off. */
const SHOWN_DAYS = 90;

type Freed = { rows: number; bytes: number };
type SizeWithDue = TableSize & { due_rows: number; due_bytes: number };

/** The size of each table, and what the service is about to remove by its settings. */
export async function databaseSizes({ environment, terminal }: Given): Promise<Outcome> {
  return withDatabase(environment, (database, settings) =>
    database.withoutTimeouts(async (database) => {
      const sizes = await tableSizes(database.db);
      const tables = await withDue(database, sizes, removalsOf(settings));
      const deleted = settings.DELETED_ROWS_KEPT_DAYS
        ? undefined
        : totalOf(await withDue(database, sizes, deletedRowRemovals(SHOWN_DAYS)));
      const total_bytes = sizes.reduce((sum, { table_bytes, index_bytes }) => sum + table_bytes + index_bytes, 0);
      const result = { tables, total_bytes, ...(deleted && { deleted_rows: { kept_days: SHOWN_DAYS, ...deleted } }) };
      return { result, message: [asTable(tables, terminal.width), ...notes(tables, deleted)].join('\n') };
    }),
  );
}

async function withDue({ db }: Database, sizes: TableSize[], removals: Removal[]): Promise<SizeWithDue[]> {
  const tables: SizeWithDue[] = [];
  for (const size of sizes) {
    const due_rows = await countDue(db, removals, size.table);
    const bytesPerRow = (size.table_bytes + size.index_bytes) / Math.max(1, size.rows);
    tables.push({ ...size, due_rows, due_bytes: Math.round(due_rows * bytesPerRow) });
  }
  return tables;
}

const totalOf = (tables: SizeWithDue[]): Freed => ({
  rows: tables.reduce((sum, { due_rows }) => sum + due_rows, 0),
  bytes: tables.reduce((sum, { due_bytes }) => sum + due_bytes, 0),
});

function asTable(tables: SizeWithDue[], width: number): string {
  const rows = tables.map(({ table, rows, is_estimate, table_bytes, index_bytes, due_rows }) => ({
    table,
    rows: `${is_estimate ? 'about ' : ''}${rows}`,
    data: mebibytes(table_bytes),
    indexes: mebibytes(index_bytes),
    due: due_rows,
  }));
  return rowsAsTable(rows, ['table', 'rows', 'data', 'indexes', 'due'], width);
}

function notes(tables: SizeWithDue[], deleted: Freed | undefined): string[] {
  const due = totalOf(tables);
  const lines = [
    `\nThe running service removes what is due: ${counted(due.rows, 'row')}, about ${mebibytes(due.bytes)}. PostgreSQL uses the space for new rows.`,
  ];
  if (deleted) {
    lines.push(
      `DELETED_ROWS_KEPT_DAYS is off. With ${SHOWN_DAYS}, ${counted(deleted.rows, 'deleted row')} would go, too: about ${mebibytes(deleted.bytes)}.`,
    );
  }
  return lines;
}

const mebibytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
