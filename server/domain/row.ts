import { type AliasedRawBuilder, type RawBuilder, type Selection, sql } from 'kysely';
import type { ActingProject, ProjectContext } from '../context.ts';
import { NOW } from '../database/moment.ts';
import { type Db, live, plannedEachTime, query, transact } from '../database/query.ts';
import type { Row, RowChanges, TableName, Tables } from '../database/tables.ts';
import { forbidden, notFound } from '../errors.ts';

/** The tables whose rows belong to a project and are soft-deleted. */
export type ProjectTable = {
  [Table in TableName]: 'project_id' | 'deleted_at' extends keyof Row<Table> ? Table : never;
}[TableName];

/** The noun for error messages: boards, board. */
export const nounOf = (table: ProjectTable) => table.slice(0, -1);

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

/** Throws unless the row exists (404) and is in the caller's project (403). */
export function mustBeFound<Row extends { project_id: number | null }>(
  project: ActingProject,
  table: ProjectTable,
  row: Row | undefined,
): Row {
  if (!row) throw notFound(`There is no such ${nounOf(table)}.`);
  if (row.project_id !== project.id) throw forbidden(`This ${nounOf(table)} belongs to another project.`);
  return row;
}

/** Rows `t` that callers can see: live, not templates, and comments only while their card is live. */
export const isVisible = (table: ProjectTable) =>
  table === 'comments'
    ? sql`${live('t')} and exists (select from cards c where c.id = t.card_id and ${live('c')})`
    : sql`${live('t')} and t.project_id is not null`;

/** Finds a row of the project, and returns these columns. */
export async function findRow<Table extends ProjectTable, const Columns extends readonly Column<Table>[] = []>(
  { db, caller }: ProjectContext,
  table: Table,
  id: number,
  columns?: Columns,
): Promise<Selected<Table, Columns>> {
  const [row] = await query(
    db,
    sql<Selected<Table, Columns> & { project_id: number }>`
      select ${selectionOf([...(columns ?? []), 'project_id'])} from ${sql.table(table)} t where t.id = ${id} and ${isVisible(table)}`,
  );
  return mustBeFound(caller.project, table, row);
}

/**
 * Changes a row of the project in one statement, and returns these columns, which start with `id` and `project_id`. A row of
 * another project is not changed; only these two are read of it, for the 403.
 */
export async function changeRow<Table extends ProjectTable, const Columns extends readonly Column<Table>[]>(
  { db, caller }: ProjectContext,
  table: Table,
  id: number,
  changes: RowChanges<Table>,
  columns: Columns,
): Promise<Selected<Table, Columns>> {
  // Not prepared: each set of changed columns would use up a statement name.
  const [row] = await query(
    db,
    plannedEachTime(sql<Selected<Table, Columns> & { project_id: number }>`
      with found as (
        select t.id, t.project_id from ${sql.table(table)} t where t.id = ${id} and ${isVisible(table)} for update of t
      ), changed as (
        update ${sql.table(table)} set ${assignments<Table>(changes)}
        where id = (select id from found where project_id = ${caller.project.id})
        returning ${selectionOf(columns)}
      )
      select * from found left join changed using (id, project_id)`),
  );
  return mustBeFound(caller.project, table, row);
}

export async function deleteRow(context: ProjectContext, table: ProjectTable, id: number): Promise<void> {
  await changeRow(context, table, id, { deleted_at: new Date() }, ['id', 'project_id']);
}

/** Deletes a board with its groups and cards, or a group with its cards. */
export async function deleteWithContents(context: ProjectContext, table: 'boards' | 'groups', id: number) {
  await findRow(context, table, id);

  await transact(context.db, async (db) => {
    await lockProject(db, context.caller.project);
    await deleteRow({ ...context, db }, table, id);
    await deleteContents[table](db, id);
  });
}

/** Marks the contents of a deleted board or group as deleted, too; `db` is in a transaction. */
export const deleteContents = {
  boards: async (db: Db, board_id: number): Promise<void> => {
    await db
      .with('deleted', (db) =>
        db.updateTable('groups').set(DELETED).where('board_id', '=', board_id).where(live()).returning('id'),
      )
      .updateTable('cards')
      .set(DELETED)
      .where('group_id', 'in', (from) => from.selectFrom('deleted').select('id'))
      .where(live())
      .execute();
  },
  groups: async (db: Db, group_id: number): Promise<void> => {
    await db.updateTable('cards').set(DELETED).where('group_id', '=', group_id).where(live()).execute();
  },
};

/** The changes that mark several rows as deleted. */
export const DELETED = { deleted_at: NOW, updated_at: NOW };

/** The `set` of an update; undefined columns are not changed. */
export function assignments<Table extends TableName>(changes: RowChanges<Table>): RawBuilder<unknown> {
  const sent = Object.entries(changes).filter(([, value]) => value !== undefined);
  return sql.join([...sent.map(([column, value]) => sql`${sql.ref(column)} = ${value}`), sql`updated_at = now()`]);
}

/** Drops null changes, for columns that can't be null. */
export function withoutNulls<Table extends TableName>(changes: Nullable<RowChanges<Table>>): RowChanges<Table> {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value != null)) as RowChanges<Table>;
}
type Nullable<Changes> = { [Column in keyof Changes]: Changes[Column] | null };

/** Locks the project row before several of its rows change: one lock order prevents deadlocks. */
export async function lockProject(db: Db, { id }: ActingProject): Promise<void> {
  await db.selectFrom('projects').select('id').where('id', '=', id).forNoKeyUpdate().execute();
}
