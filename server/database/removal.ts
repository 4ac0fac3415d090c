import { type RawBuilder, sql } from 'kysely';
import type { BackgroundWork, Step, StepLimit } from './background.ts';
import { type Db, plannedEachTime, query, queryOne, someOf, transact } from './query.ts';
import type { TableName } from './tables.ts';
import { NOW } from './timestamp.ts';

/** Which rows of a table are removed for good. */
export type Removal = {
  table: TableName;
  /** The rows `t` that are due at a time. An index must find them, since it is asked again and again. */
  due: (now: RawBuilder<Date>) => RawBuilder<unknown>;
  /** The timestamp of that index; undefined if it begins with another column. */
  by?: string;
  /** Which of the due rows can go now; others wait until nothing refers to them. */
  isFree?: RawBuilder<unknown>;
  /** The rows that go first, since they refer to the removed ones with `column`. */
  contents?: Contents;
};

/** Rows with a large `last` go first: none refers to one with a larger value. */
type Contents = { table: TableName; column: string; last: string };

export const removalWork = (removal: Removal): BackgroundWork => ({
  table: removal.table,
  step: (db, limit) => removeSome(db, removal, limit),
});

/** How many rows this process has removed, by table. */
export const removedRows = new Map<TableName, number>();

/**
 * Removes some rows, oldest first; if they have many contents, only some of those. Rows that another transaction has locked are
 * skipped: several nodes can do it at once.
 */
export async function removeSome(
  db: Db,
  { table, due, by, isFree = sql`true`, contents }: Removal,
  { rows, after }: StepLimit,
  now: RawBuilder<Date> = NOW,
): Promise<Step> {
  const time = by ? sql.ref(`t.${by}`) : sql`null::timestamptz`;
  const isAfter = by && after !== undefined ? sql`${time} >= ${after}::timestamptz` : sql`true`;
  const some = (column: 'id' | 'ctid') => sql<{ id: number }>`
    select t.${sql.ref(column)} from ${sql.table(table)} t where ${due(now)} and ${isFree} and ${isAfter}
    ${by ? sql`order by ${time}` : sql``} limit ${sql.lit(rows)} for update of t skip locked`;

  const { removed, emptied } = await transact(db, async (db): Promise<{ removed: Step; emptied: number }> => {
    await useIndexes(db);
    if (!contents)
      return { removed: await removeRows(db, table, sql`ctid = any(array(${some('ctid')}))`, time), emptied: 0 };

    const ids = (await query(db, plannedEachTime(some('id')))).map(({ id }) => id);
    const { count: emptied } = await removeRows(db, contents.table, isContent(contents, ids, rows));
    // There may be more contents: the next step takes them.
    if (emptied === rows) return { removed: { count: 0 }, emptied };
    return { removed: await removeRows(db, table, sql`id = any(${ids}::int[])`, time), emptied };
  });

  addTo(removedRows, table, removed.count);
  if (contents) addTo(removedRows, contents.table, emptied);
  return { ...removed, count: Math.max(removed.count, emptied) };
}

/** For this transaction: rows come from their index one by one, whatever the planner believes about their number. */
export async function useIndexes(db: Db): Promise<void> {
  const off = UNBOUNDED.map((name) => sql`set_config(${sql.lit(name)}, 'off', true)`);
  await query(db, sql`select ${sql.join(off)}`);
}
/** Ways to read that take in all due rows before the first one comes out. */
const UNBOUNDED = ['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_sort', 'jit'];

/** The last contents of each of these rows, up to a number. */
const isContent = ({ table, column, last }: Contents, ids: number[], rows: number) => sql`
  ctid = any(array(
    select c.ctid from unnest(${ids}::int[]) as parent (id) cross join lateral (
      select ctid from ${sql.table(table)} where ${sql.ref(column)} = parent.id
      order by ${sql.ref(last)} desc limit ${sql.lit(rows)}) as c limit ${sql.lit(rows)}))`;

async function removeRows(
  db: Db,
  table: TableName,
  which: RawBuilder<unknown>,
  time: RawBuilder<unknown> = sql`null::timestamptz`,
): Promise<Step> {
  return queryOne(
    db,
    plannedEachTime(sql<Step & { count: number }>`
      with removed as (delete from ${sql.table(table)} t where ${which} returning ${time} as time)
      select count(*)::int as count, max(time)::text as last from removed`),
  );
}

const addTo = (counts: Map<TableName, number>, table: TableName, count: number) =>
  counts.set(table, (counts.get(table) ?? 0) + count);

/** How many rows of a table are due, alone or as contents of others; those that have to wait count, too. */
export async function countDue(
  db: Db,
  removals: Removal[],
  table: TableName,
  now: RawBuilder<Date> = NOW,
): Promise<number> {
  const conditions = removals.flatMap(({ table: of, due, contents }) => [
    ...(of === table ? [due(now)] : []),
    ...(contents?.table === table
      ? [sql`t.${sql.ref(contents.column)} in (select t.id from ${sql.table(of)} t where ${due(now)})`]
      : []),
  ]);
  if (conditions.length === 0) return 0;
  const isDue = someOf(conditions.map((condition) => sql`(${condition})`));
  const statement = sql<{ count: number }>`select count(*)::int as count from ${sql.table(table)} t where ${isDue}`;
  return (await queryOne(db, plannedEachTime(statement))).count;
}
