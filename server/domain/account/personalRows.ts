import { type RawBuilder, sql } from 'kysely';
import { allOf, type Db, plannedEachTime, query, queryOne, someOf, transact } from '../../database/query.ts';
import { useIndexes } from '../../database/removal.ts';
import { PERSONAL_DATA, type PersonalTable } from './personalData.ts';
import { findReach, isOfAddress, isSeen, type Person, summaryOf } from './reach.ts';

/** Statements over rows about a person, made from the list of personal data. */

/** Whether a row with this alias is about the person; undefined for tables that are about nobody. */
export function isAbout(listed: PersonalTable, alias: string, person: Person): RawBuilder<boolean> | undefined {
  const conditions = [
    ...listed.by.map((column) => sql`${sql.ref(`${alias}.${column}`)} = ${person.id}::int`),
    ...isOfAddress(listed, alias, person),
  ];
  return conditions.length > 0 ? sql`(${someOf(conditions)})` : undefined;
}

/** The key of the last row of a slice, as JSON. */
type Place = object | null;

/** The next rows of a table `t`, by its key. Each value of the last key is a statement of its own, so that the index is entered there. */
function nextRows(table: string, last: Place, which: RawBuilder<unknown>, limit: number) {
  const keys = keysOf(table);
  const lastValue = (key: string) =>
    sql`(select ${sql.ref(key)} from jsonb_populate_record(null::${sql.table(table)}, ${JSON.stringify(last)}::jsonb))`;
  const own = sql.join(keys.map((key) => sql.ref(`t.${key}`)));
  return sql`
    select t.* from ${sql.table(table)} t
    where ${last ? sql`(${own}) > (${sql.join(keys.map(lastValue))})` : sql`true`} and ${which} order by ${own} limit ${sql.lit(limit)}`;
}

const keysOf = (table: string) => PERSONAL_DATA[table]?.key ?? [];

/** The key of the last row of `slice`. */
const lastOf = (table: string) => sql`(
  select jsonb_build_object(${sql.join(keysOf(table).map((key) => sql`${sql.lit(key)}, ${sql.ref(`s.${key}`)}`))}) from slice s
  order by ${sql.join(keysOf(table).map((key) => sql`${sql.ref(`s.${key}`)} desc`))} limit 1)`;

/** Bounds the memory and the time of a statement. */
const ROWS = 500;
const SCANNED_ROWS = 2000;

/**
 * The rows about a person, page by page, without secrets, and without the contents of those that they may not read now. A page of a
 * table without an index may be empty.
 */
export async function* rowsAbout(db: Db, table: string, person: Person): AsyncGenerator<object[]> {
  const listed = PERSONAL_DATA[table] as PersonalTable;
  const which = isAbout(listed, 't', person);
  if (!which) return;
  const seen = isSeen(table, listed, person, await findReach(db, person.id));
  const isScanned = listed.flags.has('scanned');
  const limit = isScanned ? SCANNED_ROWS : ROWS;
  for (let last: Place = null; ; ) {
    const statement = plannedEachTime(sql<Slice & { rows: object[] }>`
      with slice as materialized (${nextRows(table, last, isScanned ? sql`true` : which, limit)})
      select coalesce(jsonb_agg(case when ${seen} then to_jsonb(t) - ${listed.secret}::text[] else ${summaryOf(listed, 't', person)} end)
          filter (where ${which}), '[]') as rows,
        ${lastOf(table)} as last, count(*)::int as read from slice t`);
    const page: Slice & { rows: object[] } = isScanned ? await readSlice(db, statement) : await queryOne(db, statement);
    yield page.rows;
    if (page.read < limit) return;
    last = page.last;
  }
}

export type ExportedRow = { table: string; row: Record<string, unknown> };

/** These rows, without the contents of those that the person may not read any more. */
export async function stillSeen(db: Db, rows: ExportedRow[], person: Person): Promise<ExportedRow[]> {
  const reach = await findReach(db, person.id);
  const checked: ExportedRow[] = [];
  for (const [table, ofTable] of Map.groupBy(rows, ({ table }) => table)) {
    const listed = PERSONAL_DATA[table] as PersonalTable;
    if (listed.seen.length === 0) checked.push(...ofTable);
    else {
      const isSame = allOf(listed.key.map((key) => sql`${sql.ref(`t.${key}`)} = ${sql.ref(`k.${key}`)}`));
      const found = await query(
        db,
        sql<Pick<ExportedRow, 'row'>>`
          select case when exists (select from ${sql.table(table)} t where ${isSame} and ${isSeen(table, listed, person, reach)})
            then e.row else ${summaryOf(listed, 'k', person)} end as row
          from jsonb_array_elements(${JSON.stringify(ofTable.map(({ row }) => row))}::jsonb) with ordinality as e (row, place)
          cross join lateral jsonb_populate_record(null::${sql.table(table)}, e.row) as k order by e.place`,
      );
      checked.push(...found.map(({ row }) => ({ table, row })));
    }
  }
  return checked;
}

/** Sets a column to null where a condition on `t` holds, slice by slice over the whole table. False if the time did not suffice. */
export async function clearInSlices(
  db: Db,
  table: string,
  column: string,
  which: RawBuilder<unknown>,
  isLate: () => boolean = () => false,
): Promise<boolean> {
  const isSame = allOf(keysOf(table).map((key) => sql`${sql.ref(`u.${key}`)} = ${sql.ref(`t.${key}`)}`));
  return inSlices(
    db,
    table,
    (slice, last) =>
      sql<Slice>`
        with slice as materialized (${slice}), cleared as (
          update ${sql.table(table)} u set ${sql.ref(column)} = null from slice t where ${isSame} and (${which}))
        select ${last} as last, count(*)::int as read from slice`,
    isLate,
  );
}

type Slice = { last: Place; read: number };

/** The next slice by the primary key, whatever the planner believes: it would sort a table whose statistics it does not have. */
const readSlice = <Result extends Slice>(db: Db, statement: RawBuilder<Result>): Promise<Result> =>
  transact(db, async (db) => {
    await useIndexes(db);
    return queryOne(db, statement);
  });

/** Runs a statement for each slice of a table. False if the time did not suffice. */
export async function inSlices<Result extends Slice>(
  db: Db,
  table: string,
  statement: (slice: RawBuilder<unknown>, last: RawBuilder<unknown>) => RawBuilder<Result>,
  isLate: () => boolean,
  take: (result: Result) => void = () => undefined,
): Promise<boolean> {
  for (let last: Place = null; !isLate(); ) {
    const slice = statement(nextRows(table, last, sql`true`, SCANNED_ROWS), lastOf(table));
    const result: Result = await readSlice(db, plannedEachTime(slice));
    take(result);
    if (result.read < SCANNED_ROWS) return true;
    last = result.last;
  }
  return false;
}

/** Deletes or blanks what the list says, except what is swept. Returns how many rows of each table. */
export async function removeAbout(db: Db, person: Person): Promise<{ table: string; rows: number }[]> {
  const removed: { table: string; rows: number }[] = [];
  for (const [table, listed] of Object.entries(PERSONAL_DATA)) {
    const which = isAbout(listed, 't', person);
    const isDeleted = listed.flags.has('delete');
    if (!which || !(isDeleted || listed.flags.has('blank'))) continue;
    const columns = [...listed.about, ...listed.secret].map((column) => sql.ref(column));
    const change = isDeleted
      ? sql`delete from ${sql.table(table)} t where ${which} returning 1`
      : sql`update ${sql.table(table)} t set ${sql.join(columns.map((column) => sql`${column} = null`))}
            where ${which} and num_nonnulls(${sql.join(columns)}) > 0 returning 1`;
    const count = sql<{ rows: number }>`with removed as (${change}) select count(*)::int as rows from removed`;
    const { rows } = await queryOne(db, count);
    if (rows > 0) removed.push({ table, rows });
  }
  return removed;
}
