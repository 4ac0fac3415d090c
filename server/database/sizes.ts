import { sql } from 'kysely';
import { entities } from './entities.ts';
import { type Db, query } from './query.ts';
import { countRows } from './rows.ts';
import type { TableName } from './tables.ts';

export type TableSize = {
  table: TableName;
  rows: number;
  /** Counting the rows would take long: it is what PostgreSQL's statistics say. */
  is_estimate: boolean;
  table_bytes: number;
  index_bytes: number;
};

/** Above it, rows are not counted one by one. */
const LARGE_BYTES = 64 * 1024 * 1024;

/** All tables, the largest first. */
export async function tableSizes(db: Db): Promise<TableSize[]> {
  const sizes = await query(
    db,
    sql<Omit<TableSize, 'is_estimate'>>`
      select c.relname as table, c.reltuples::float8 as rows, pg_table_size(c.oid)::float8 as table_bytes,
        pg_indexes_size(c.oid)::float8 as index_bytes
      from pg_class c where c.oid = any(${TABLES}::text[]::regclass[])
      order by pg_total_relation_size(c.oid) desc, c.relname`,
  );
  const counted: TableSize[] = [];
  for (const size of sizes) {
    // -1 before the first analysis.
    const is_estimate = size.table_bytes > LARGE_BYTES && size.rows >= 0;
    counted.push({ ...size, rows: is_estimate ? size.rows : await countRows(db, size.table), is_estimate });
  }
  return counted;
}

const TABLES = entities.map(({ meta }) => meta.tableName);
