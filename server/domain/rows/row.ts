import { type AliasedRawBuilder, type RawBuilder, type Selection, sql } from 'kysely';
import { notFound } from '../../../shared/errors.ts';
import type { Role } from '../../../shared/user.ts';
import { type Db, live, plannedEachTime, query } from '../../database/query.ts';
import type { Row, RowChanges, TableName, Tables } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import type { ProjectCaller, ProjectContext } from '../access/context.ts';
import { bound, isEnough, mustBePermitted, permitOf, roleIn } from '../access/permission.ts';

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

/** The project of a row that the call names, and the caller's role there. */
export type CallerRole = { project_id: number; caller_role: Role | null };

/** Throws unless the row exists (404) and the caller may act in its project (403). Returns it without the caller's role. */
export function mustBeFound<Row extends object>(
  caller: ProjectCaller,
  table: ProjectTable,
  found: (Row & CallerRole) | undefined,
): Row {
  if (!found) throw noSuchRow(table);
  const { caller_role, ...row } = found;
  const project = { id: found.project_id, role: caller_role };
  mustBePermitted(caller, project, `This ${nounOf(table)} belongs to another project.`);
  return row as Row;
}

export const noSuchRow = (table: ProjectTable) => notFound(`There is no such ${nounOf(table)}.`);

/** Rows `t` that callers can see: live, not templates, and comments only while their card is live. */
export const isVisible = (table: ProjectTable) =>
  table === 'comments'
    ? sql<boolean>`${live('t')} and exists (select from cards c where c.id = t.card_id and ${isLiveCard('c')})`
    : sql<boolean>`${table === 'cards' ? isLiveCard('t') : live('t')} and t.project_id is not null`;

/** Live cards, without those of a deleted group that `deletion.ts` has not marked yet. Hardly ever is there such a group. */
export const isLiveCard = (alias: string) =>
  sql<boolean>`${live(alias)} and (${sql.ref(`${alias}.group_id`)} = any(array(select id from groups where is_clearing))) is not true`;

/** The project of the row that a call names, with the caller's role there. */
export type NamedProject = { id: number; role: Role };

const NAMED_PROJECT = sql.ref<number>('t.project_id').as('named_project_id');

/** Finds a row, and returns these columns and its project. */
export async function findRow<Table extends ProjectTable, const Columns extends readonly Column<Table>[] = []>(
  { db, caller }: ProjectContext,
  table: Table,
  id: number,
  columns?: Columns,
): Promise<{ row: Selected<Table, Columns>; project: NamedProject }> {
  const role = roleIn('t.project_id', bound(permitOf(caller)));
  const [found] = await query(
    db,
    sql<Selected<Table, Columns> & { named_project_id: number; caller_role: Role }>`
      select ${selectionOf([...(columns ?? []), NAMED_PROJECT, role.as('caller_role')])}
      from ${sql.table(table)} t where t.id = ${id} and ${isVisible(table)}`,
  );
  if (!found) throw noSuchRow(table);
  const { named_project_id, caller_role, ...row } = found;
  mustBeFound(caller, table, { project_id: named_project_id, caller_role });
  return { row: row as unknown as Selected<Table, Columns>, project: { id: named_project_id, role: caller_role } };
}

/**
 * Changes a row in one statement, and returns these columns, which start with `id` and `project_id`.
 *
 * - `found`: locks the row, and gives the caller's role in its project, for the 403.
 * - `changed`: the update, only if that role is high enough.
 */
export async function changeRow<Table extends ProjectTable, const Columns extends readonly Column<Table>[]>(
  { db, caller }: ProjectContext,
  table: Table,
  id: number,
  changes: RowChanges<Table>,
  columns: Columns,
): Promise<Selected<Table, Columns>> {
  const permit = bound(permitOf(caller));
  // Not prepared: each set of changed columns would use up a statement name.
  const [row] = await query(
    db,
    plannedEachTime(sql<Selected<Table, Columns> & CallerRole>`
      with found as (
        select t.id, t.project_id, ${roleIn('t.project_id', permit)} as caller_role
        from ${sql.table(table)} t where t.id = ${id} and ${isVisible(table)} for update of t
      ), changed as (
        update ${sql.table(table)} set ${assignments<Table>(changes)}
        where id = (select id from found where ${isEnough(sql`caller_role`, permit)})
        returning ${selectionOf(columns)}
      )
      select * from found left join changed using (id, project_id)`),
  );
  return mustBeFound(caller, table, row);
}

export async function deleteRow(context: ProjectContext, table: ProjectTable, id: number): Promise<void> {
  await changeRow(context, table, id, { deleted_at: new Date() }, ['id', 'project_id']);
}

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
export const lockProject = (db: Db, id: number) => lockProjects(db, sql`id = ${id}`);

/** Locks the projects that meet the condition in the order of their ids: one lock order prevents deadlocks. */
export const lockProjects = (db: Db, condition: RawBuilder<boolean>) =>
  db.selectFrom('projects').select('id').where(condition).orderBy('id').forNoKeyUpdate().execute();
