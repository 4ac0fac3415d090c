import { type Kysely, type RawBuilder, sql } from 'kysely';
import { LARGEST_INTEGER } from '../../shared/limits.ts';
import { LIVE } from './entities/deletion.ts';
import { isStalePlan, PLANNED_EACH_TIME } from './preparedStatements.ts';
import type { NewRow, Row, TableName, Tables } from './tables.ts';

/** The database, or a transaction in it. */
export type Db = Kysely<Tables>;

/** Runs one statement with bound values. */
export async function query<Found>(db: Db, statement: RawBuilder<Found>): Promise<Found[]> {
  const { rows } = await statement.execute(db);
  return rows;
}

/** The first row, of a statement that always returns one. */
export function oneRow<Found>([row]: readonly Found[]): Found {
  if (row === undefined) throw new Error('The statement returned no row.');
  return row;
}

/** The row of a statement that always returns one. */
export const queryOne = async <Found>(db: Db, statement: RawBuilder<Found>): Promise<Found> =>
  oneRow(await query(db, statement));

/** Inserts rows without domain rules: demo data and test data. */
export async function insertRows<Table extends TableName>(db: Db, table: Table, rows: NewRow<Table>[]): Promise<void> {
  const insert = db.insertInto(table as TableName);
  await insert.values(rows as NewRow<TableName>[]).execute();
}

/** A prefix that shortens the client's timeout for the response. */
export const SHORT_TIMEOUT = '/* short timeout */';

/** A statement with a short timeout: the first one of every request, which takes milliseconds. */
export const withShortTimeout = <Found>(statement: RawBuilder<Found>): RawBuilder<Found> =>
  sql`${sql.raw(SHORT_TIMEOUT)} ${statement}`;

/** Throws unless the database responds. */
export const ping = (db: Db) => query(db, withShortTimeout(sql`select 1`));

/** A statement that is planned each time, since a generic plan would be bad for many values. */
export const plannedEachTime = <Found>(statement: RawBuilder<Found>): RawBuilder<Found> =>
  sql`${sql.raw(PLANNED_EACH_TIME)} ${statement}`;

/** Runs a transaction; retries it after a deadlock or on a read-only server, at most three attempts. Within a transaction, joins that one. */
export async function transact<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  if (db.isTransaction) return work(db);
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.transaction().execute(work);
    } catch (error) {
      if (attempt === 3 || !isRetried(error)) throw error;
    }
  }
}
/** Runs statements that all see the same state of the database; each one alone would see later changes, too. */
export function inOneSnapshot<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  return transact(db, async (transaction) => {
    if (!db.isTransaction) await query(transaction, sql`set transaction isolation level repeatable read, read only`);
    return work(transaction);
  });
}

/**
 * Deadlock, serialization failure, a server that became read-only, so that the next attempt gets a new connection, or a migration
 * that changed a table since its statements were prepared.
 */
const isRetried = (error: unknown) =>
  ['40P01', '40001', '25006'].includes((error as { code?: string }).code ?? '') || isStalePlan(error);

/** Turns the violation of a constraint into another error: `mapConstraintErrors(work, { users_email_unique: () => invalid(…) })`. */
export async function mapConstraintErrors<Result>(
  work: Promise<Result>,
  errors: Record<string, () => Error>,
): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw errors[(error as { constraint?: string }).constraint ?? '']?.() ?? error;
  }
}

/** For `where('id', '=', anyOf(ids))`: one array value, so that the statement's text does not depend on the number of ids. */
export const anyOf = (ids: readonly number[]) => sql<number>`any(${ids}::int[])`;

/**
 * Rows with these ids, for `from`: each is looked up by its id. Without statistics, PostgreSQL expects hardly any rows that are
 * not deleted, and would read a whole index of them to find the ids.
 */
export const rowsById = <Table extends TableName>(table: Table, ids: readonly number[]) => sql<Row<Table>>`(
    select found.* from unnest(${ids}::int[]) as wanted (id)
    cross join lateral (select * from ${sql.table(table)} t where t.id = wanted.id offset 0) as found)`;

/** All of these conditions; those that are false are left out. */
export const allOf = (conditions: readonly (RawBuilder<unknown> | false)[]) =>
  sql.join(
    conditions.filter((condition) => condition !== false),
    sql` and `,
  );

export const someOf = (conditions: readonly RawBuilder<unknown>[]) => sql.join(conditions, sql` or `);

/** Whether one of the columns contains the text, in any case; true without a text. Percent signs and underscores are plain characters. */
export const containsText = (text: string | null | undefined, ...columns: string[]): RawBuilder<boolean> =>
  text == null
    ? sql`true`
    : sql`(${someOf(columns.map((column) => sql`position(lower(${text}) in lower(${sql.ref(column)})) > 0`))})`;

/** Rows that are not deleted; the alias is the name of the table in the statement. */
export const live = (alias?: string) => sql.raw<boolean>(alias ? `${alias}.${LIVE}` : LIVE);

/** The next position after the last one, or a later one, capped at the int4 maximum; ties break by id. */
export const nextPosition = (last: RawBuilder<unknown>, steps: RawBuilder<unknown> = sql`1`) =>
  sql<number>`least(coalesce((${last}), 0), ${sql.lit(LARGEST_INTEGER)} - ${steps}) + ${steps}`;
