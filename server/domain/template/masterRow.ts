import { type RawBuilder, sql } from 'kysely';
import { notFound } from '../../../shared/errors.ts';
import type { Placement } from '../../../shared/fields.ts';
import { type Db, live, plannedEachTime, query } from '../../database/query.ts';
import { type Column, type Selected, selectionOf, singularOf } from '../../database/selection.ts';
import type { RowChanges } from '../../database/tables.ts';
import {
  fittingVersions,
  isRequired,
  rowChanged,
  VERSION,
  VERSION_NUMBER,
  type Versioned,
} from '../../database/version.ts';
import type { SignedInContext } from '../access/context.ts';
import { movedOf, setPositions } from '../board/position.ts';
import {
  assignments,
  changedFields,
  changeEventParts,
  DELETION_COLUMNS,
  deletionOf,
  isLiveCard,
  verbOf,
} from '../board/row.ts';
import { furtherRows, writeEvents } from '../event/event.ts';

/** The tables with templates. */
type MasterTable = 'boards' | 'groups' | 'cards';

export const noSuchMaster = (table: MasterTable) => notFound(`There is no such master ${singularOf(table)}.`);

/** Finds a template, and returns these columns; rows of projects are a 404, and deleted ones unless `which` says otherwise. */
export async function findMaster<Table extends MasterTable, const Columns extends readonly Column<Table>[]>(
  db: Db,
  table: Table,
  id: number,
  columns: Columns,
  which: RawBuilder<boolean> = isLive(table, table),
): Promise<Selected<Table, Columns>> {
  const row = await db
    .selectFrom(table as MasterTable)
    .select(columns as readonly Column<MasterTable>[])
    .where('id', '=', id)
    .where('is_master', 'is', true)
    .where(which)
    .executeTakeFirstOrThrow(() => noSuchMaster(table));
  return row as unknown as Selected<Table, Columns>;
}

/** Deleted templates, too. */
export const EVEN_DELETED = sql<boolean>`true`;

/**
 * Changes a template in one statement, with its event if something has changed, and returns these columns. The lock is that of an
 * update: a stronger one would wait for the steps of a sync, whose copies refer to the row.
 */
export async function changeMaster<Table extends MasterTable, const Columns extends readonly Column<Table>[]>(
  context: SignedInContext,
  table: Table,
  id: number,
  changes: RowChanges<Table>,
  columns: Columns,
  if_version?: string,
): Promise<Versioned<Selected<Table, Columns>>> {
  const [row] = await query(
    context.db,
    plannedEachTime(sql<Selected<Table, Columns> & { version: string | null; version_number: number }>`
      with found as (
        select t.id, t.project_id, ${changedFields(table, changes)} as changed_fields, ${fittingVersions('t')} as found_versions
        from ${sql.table(table)} t where t.id = ${id} and t.is_master and ${isLive(table, 't')} for no key update of t
      ), changed as (
        update ${sql.table(table)} set ${assignments<Table>(changes)}
        where id = (select id from found where ${isRequired(sql`found_versions`, if_version)})
        returning ${selectionOf([...columns, VERSION, VERSION_NUMBER])}
      ), ${changeEventParts(context, `master_${singularOf(table)}.${verbOf(changes)}`)}
      select changed.* from found left join changed on true`),
  );
  if (!row) throw noSuchMaster(table);
  const { version_number, ...changed } = row;
  if (changed.version === null) throw rowChanged();
  return changed as unknown as Versioned<Selected<Table, Columns>>;
}

const isLive = (table: MasterTable, alias: string) => (table === 'cards' ? isLiveCard(alias) : live(alias));

/** Deletes a template, and returns the id of the deletion. */
export async function deleteMaster(
  context: SignedInContext,
  table: MasterTable,
  id: number,
  if_version?: string,
): Promise<number> {
  return deletionOf(await changeMaster(context, table, id, { deleted_at: new Date() }, DELETION_COLUMNS, if_version));
}

/** Puts templates `t` at their positions among these siblings, which they had `before`, atomically; `db` is in a transaction. */
export async function placeMasters(
  context: SignedInContext,
  table: MasterTable,
  placements: Placement[],
  before: readonly Placement[],
  isSibling: RawBuilder<boolean>,
): Promise<void> {
  const { placed, moved } = await setPositions(context.db, table, placements, sql`t.is_master and ${isSibling}`);
  if (placed < placements.length) throw noSuchMaster(table);

  const ids = [...movedOf(placements, before), ...moved];
  if (ids.length > 0)
    await writeEvents(context, [{ type: `master_${singularOf(table)}.reordered`, data: furtherRows(ids) }]);
}
