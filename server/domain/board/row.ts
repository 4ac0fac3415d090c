import { type RawBuilder, sql } from 'kysely';
import { notFound } from '../../../shared/errors.ts';
import type { EventData, EventType } from '../../../shared/event.ts';
import type { Role } from '../../../shared/user.ts';
import { type Db, live, plannedEachTime, query } from '../../database/query.ts';
import { type Column, type Selected, selectionOf, singularOf } from '../../database/selection.ts';
import type { Row, RowChanges, TableName } from '../../database/tables.ts';
import {
  fittingVersions,
  isRequired,
  rowChanged,
  VERSION,
  VERSION_NUMBER,
  type Versioned,
} from '../../database/version.ts';
import type { ProjectCaller, ProjectContext } from '../access/context.ts';
import { bound, isEnough, mustBePermitted, permitOf, roleIn } from '../access/permission.ts';
import { type EventContext, eventPartsOf, platformOf } from '../event/event.ts';
import { fieldOf } from './columns.ts';
import { NEXT_DELETION, recordDeletions } from './deletionRecord.ts';

/** The tables whose rows belong to a project and are soft-deleted. */
export type ProjectTable = {
  [Table in TableName]: 'project_id' | 'deletion_id' extends keyof Row<Table> ? Table : never;
}[TableName];

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
  mustBePermitted(caller, project, `This ${singularOf(table)} belongs to another project.`);
  return row as Row;
}

export const noSuchRow = (table: ProjectTable) => notFound(`There is no such ${singularOf(table)}.`);

/** Rows `t` that callers can see: live, not templates, and comments only while their card is live. */
export const isVisible = (table: ProjectTable) =>
  table === 'comments'
    ? sql<boolean>`${live('t')} and exists (select from cards c where c.id = t.card_id and ${isLiveCard('c')})`
    : sql<boolean>`${table === 'cards' ? isLiveCard('t') : live('t')} and t.project_id is not null`;

/**
 * Live cards, without those of a deleted group that `deletion.ts` has not marked yet. Hardly ever is there such a group. The first
 * look finds that out in the index, whatever the statistics say: without any, PostgreSQL expects half of the groups, and reads all.
 */
export const isLiveCard = (alias: string) => sql<boolean>`${live(alias)} and ((${FIRST_CLEARING}) is null
    or (${sql.ref(`${alias}.group_id`)} = any(array(select id from groups where is_clearing))) is not true)`;
const FIRST_CLEARING = sql`select id from groups where is_clearing order by id limit 1`;

/** The project of the row that a call names, with the caller's role there. */
export type NamedProject = { id: number; role: Role };

const NAMED_PROJECT = sql.ref<number>('t.project_id').as('named_project_id');

/** Finds a row, and returns these columns and its project. A deleted row is found only if `which` says so. */
export async function findRow<Table extends ProjectTable, const Columns extends readonly Column<Table>[] = []>(
  { db, caller }: ProjectContext,
  table: Table,
  id: number,
  columns?: Columns,
  which: RawBuilder<boolean> = isVisible(table),
): Promise<{ row: Selected<Table, Columns>; project: NamedProject }> {
  const role = roleIn('t.project_id', bound(permitOf(caller)));
  const [found] = await query(
    db,
    sql<Selected<Table, Columns> & { named_project_id: number; caller_role: Role }>`
      select ${selectionOf([...(columns ?? []), NAMED_PROJECT, role.as('caller_role')])}
      from ${sql.table(table)} t where t.id = ${id} and ${which}`,
  );
  if (!found) throw noSuchRow(table);
  const { named_project_id, caller_role, ...row } = found;
  mustBeFound(caller, table, { project_id: named_project_id, caller_role });
  return { row: row as unknown as Selected<Table, Columns>, project: { id: named_project_id, role: caller_role } };
}

/** The event of a changed row: that of its table by default; null if it is written elsewhere. */
type RowEvent = { type?: EventType; data?: EventData } | null;

type ChangeOptions = {
  event?: RowEvent;
  /** Throws a 412 unless the row has this version. */
  if_version?: string | undefined;
};

/**
 * Changes a row in one statement, and returns these columns, which start with `id` and `project_id`, with its version.
 *
 * - `found`: locks the row, and gives the caller's role in its project, for the 403, its version, for the 412, and the
 *   fields that get another value.
 * - `changed`: the update, only if that role is high enough and the version the required one.
 * - `noted`: the event, only if something has changed.
 */
export async function changeRow<Table extends ProjectTable, const Columns extends readonly Column<Table>[]>(
  context: ProjectContext,
  table: Table,
  id: number,
  changes: RowChanges<Table>,
  columns: Columns,
  { event = {}, if_version }: ChangeOptions = {},
): Promise<Versioned<Selected<Table, Columns>>> {
  const { db, caller } = context;
  const permit = bound(permitOf(caller));
  // Not prepared: each set of changed columns would use up a statement name.
  const [row] = await query(
    db,
    plannedEachTime(sql<Selected<Table, Columns> & CallerRole & ChangedRow>`
      with found as (
        select t.id, t.project_id, ${roleIn('t.project_id', permit)} as caller_role, ${changedFields(table, changes)} as changed_fields,
          ${fittingVersions('t')} as found_versions
        from ${sql.table(table)} t where t.id = ${id} and ${isVisible(table)} for update of t
      ), changed as (
        update ${sql.table(table)} set ${assignments<Table>(changes)}
        where id = (select id from found where ${isEnough(sql`caller_role`, permit)} and ${isRequired(sql`found_versions`, if_version)})
        returning ${selectionOf([...columns, VERSION, VERSION_NUMBER])}
      )${event === null ? sql`` : sql`, ${changeEventParts(context, event.type ?? (`${singularOf(table)}.${verbOf(changes)}` as EventType), event.data)}`}
      select * from found left join changed using (id, project_id)`),
  );
  const { changed_fields, found_versions, version_number, ...changed } = mustBeFound(caller, table, row);
  if (changed.version === null) throw rowChanged();
  return changed as unknown as Versioned<Selected<Table, Columns>>;
}

/** The version is null if nothing was changed. */
type ChangedRow = {
  changed_fields: string[];
  found_versions: string[];
  version_number: number;
  version: string | null;
};

/** Locks a row and checks its version, before several statements of a transaction change the row. */
export async function mustHaveVersion(db: Db, table: ProjectTable, id: number, if_version: string | undefined) {
  if (if_version === undefined) return;
  const [row] = await query(
    db,
    sql<{ is_required: boolean }>`
      select ${isRequired(fittingVersions('t'), if_version)} as is_required from ${sql.table(table)} t where t.id = ${id} for no key update`,
  );
  if (!row?.is_required) throw rowChanged();
}

/** What happens to a row with these changes. */
export const verbOf = (changes: object) => ('deleted_at' in changes ? 'deleted' : 'updated');

/** The names of the fields that get another value. Both columns of a due date are one field. */
export function changedFields<Table extends TableName>(table: Table, changes: RowChanges<Table>): RawBuilder<unknown> {
  const names = sentColumns(changes).map(
    ([column, value]) =>
      sql`case when t.${sql.ref(column)} is distinct from ${value} then ${sql.lit(fieldOf(table, column))} end`,
  );
  return names.length === 0 ? sql`array[]::text[]` : sql`array_remove(array[${sql.join(names)}]::text[], null)`;
}

/**
 * Parts of a statement that write the event of the row in `found` and `changed`, with its new version, and record its
 * deletion.
 */
export function changeEventParts(context: EventContext, type: EventType, data: EventData = {}): RawBuilder<unknown> {
  const [noun = '', verb] = type.split('.');
  const fields = sql`jsonb_build_object('fields', (select jsonb_agg(distinct field order by field) from unnest(changed_fields) as field))`;
  const rows = sql`
    select ${type} as type, ${platformOf(sql`found.project_id`)} as platform_id, found.project_id, found.id as subject_id,
      null::int as by_user_id, ${JSON.stringify(data)}::jsonb || jsonb_build_object('version', version_number) ${verb === 'updated' ? sql`|| ${fields}` : sql``} as data
    from found join changed using (id) where ${data.ids || data.count ? sql`true` : sql`cardinality(changed_fields) > 0`}`;
  const note = eventPartsOf(context, rows, type);
  if (verb !== 'deleted') return note;
  return sql`${note}, ${recordDeletions(context, noun.replace('master_', ''), sql`select id, project_id, deletion_id from changed`)}`;
}

/** Deletes a row, and returns the id of the deletion. */
export async function deleteRow(
  context: ProjectContext,
  table: ProjectTable,
  id: number,
  { if_version, data }: { if_version?: string | undefined; data?: EventData } = {},
): Promise<number> {
  const options = { if_version, event: { data } };
  return deletionOf(await changeRow(context, table, id, { deleted_at: new Date() }, DELETION_COLUMNS, options));
}

/** The columns of a deleted row that its deletion is recorded with. */
export const DELETION_COLUMNS = ['id', 'project_id', 'deletion_id'] as const;

export function deletionOf({ deletion_id }: { deletion_id: number | null }): number {
  if (deletion_id === null) throw new Error('The row has no deletion.');
  return deletion_id;
}

/** The `set` of an update; undefined columns are not changed. */
export function assignments<Table extends TableName>(changes: RowChanges<Table>): RawBuilder<unknown> {
  return sql.join([
    ...sentColumns(changes).map(([column, value]) => sql`${sql.ref(column)} = ${value}`),
    ...('deleted_at' in changes ? [sql`deletion_id = ${NEXT_DELETION}`] : []),
    sql`updated_at = now()`,
  ]);
}

const sentColumns = <Table extends TableName>(changes: RowChanges<Table>) =>
  Object.entries(changes).filter(([, value]) => value !== undefined);
