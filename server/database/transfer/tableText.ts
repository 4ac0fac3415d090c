import { sql } from 'kysely';
import { type Db, query } from '../query.ts';

/** A table with the columns that are stored; all values are read and written as PostgreSQL's text, which is exact for every type. */
export type TableText = { name: string; columns: Column[] };

/** `sequence`: its name as SQL, quoted where necessary. */
type Column = { name: string; type: string; sequence: string | null };

/** The number of rows, a checksum of all values that does not depend on their order, and the bytes of the largest row. */
export type Content = { rows: number; checksum: string; largestRow: number };

export async function describeTable(db: Db, name: string): Promise<TableText> {
  const columns = await query(
    db,
    sql<Column>`
      select attname as name, format_type(atttypid, null) as type,
        pg_get_serial_sequence(quote_ident(${name}), attname) as sequence from pg_attribute
      where attrelid = to_regclass(quote_ident(${name})) and attnum > 0 and not attisdropped and attgenerated = ''
      order by attname`,
  );
  return { name, columns };
}

/** Fixes the text formats for the transaction, whatever the settings of the server or role are. */
export async function useSameText(db: Db): Promise<void> {
  await query(
    db,
    sql`select set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO, YMD', true),
      set_config('intervalstyle', 'iso_8601', true), set_config('bytea_output', 'hex', true),
      set_config('extra_float_digits', '3', true)`,
  );
}

export async function contentOf(db: Db, { name, columns }: TableText): Promise<Content> {
  const [content] = await query(
    db,
    sql<Content>`
      select count(*)::int as rows, coalesce(max(octet_length(line)), 0) as "largestRow",
        coalesce(sum(('x' || left(md5(line), 15))::bit(60)::bigint), 0)::text as checksum
      from (select row(${sql.join(columns.map((column) => sql.ref(column.name)))})::text as line from ${sql.table(name)}) as lines`,
  );
  return content!;
}

export type Values = (string | null)[];

/** Reads all rows in pages, inside a transaction. */
export async function* readPages(db: Db, { name, columns }: TableText, rowsPerPage: number): AsyncGenerator<Values[]> {
  const texts = columns.map((column, at) => sql`${sql.ref(column.name)}::text as ${sql.ref(`c${at}`)}`);
  await query(db, sql`declare page no scroll cursor for select ${sql.join(texts)} from ${sql.table(name)}`);
  for (;;) {
    const rows = await query(db, sql<Record<string, string | null>>`fetch ${sql.lit(rowsPerPage)} from page`);
    if (rows.length === 0) break;
    yield rows.map((row) => columns.map((_, at) => row[`c${at}`]!));
  }
  await query(db, sql`close page`);
}

/** The casts name no length: a value that is too long fails instead of being cut. */
export async function insertPage(db: Db, { name, columns }: TableText, rows: Values[]): Promise<void> {
  const names = columns.map((column) => sql.ref(column.name));
  const typed = columns.map(({ type }, at) => sql`${sql.ref(`c${at}`)}::${sql.raw(type)}`);
  const texts = columns.map((_, at) => sql`${rows.map((row) => row[at])}::text[]`);
  const aliases = columns.map((_, at) => sql.ref(`c${at}`));
  await query(
    db,
    sql`insert into ${sql.table(name)} (${sql.join(names)}) overriding system value
      select ${sql.join(typed)} from unnest(${sql.join(texts)}) as page (${sql.join(aliases)})`,
  );
}

/** New rows get the ids that they would get in the source. */
export async function continueSequences(source: Db, target: Db, { name, columns }: TableText): Promise<void> {
  for (const { name: column, sequence } of columns) {
    if (sequence === null) continue;
    const [state] = await query(
      source,
      sql<{ last: string; isUsed: boolean }>`
        select last_value::text as last, is_called as "isUsed" from ${sql.raw(sequence)}`,
    );
    const own = sql`pg_get_serial_sequence(quote_ident(${name}), ${column})`;
    await query(target, sql`select setval(${own}::regclass, ${state!.last}::bigint, ${state!.isUsed}::boolean)`);
  }
}
