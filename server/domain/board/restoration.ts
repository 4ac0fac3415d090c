import { type RawBuilder, sql } from 'kysely';
import { badRequest, invalid } from '../../../shared/errors.ts';
import type { EventType } from '../../../shared/event.ts';
import { MOST_SIBLINGS } from '../../../shared/fields.ts';
import { lockProject } from '../../database/projectLock.ts';
import { type Db, live, mapConstraintErrors, nextPosition, oneRow, query, transact } from '../../database/query.ts';
import { type Column, type Selected, selectionOf, singularOf } from '../../database/selection.ts';
import { numberIn, VERSION, type Versioned, withVersion } from '../../database/version.ts';
import type { ProjectContext } from '../access/context.ts';
import { type WriteContext, writeEvents } from '../event/event.ts';
import { NOUNS, parentsOf, type Restorable } from './nouns.ts';
import { CONTENTS, type Deleted, type Found } from './restoredContents.ts';
import { findRow, isLiveCard, noSuchRow } from './row.ts';

/** A row that came back, with how many others, and the deletion that was undone. */
export type Restored<Row> = Row & { restored_count: number; undone_id: number | null };

/** Restores a row of a project, with what the same deletion took along. A row that is not deleted stays as it is. */
export async function restoreRow<Table extends Restorable, const Columns extends readonly Column<Table>[]>(
  context: ProjectContext,
  table: Table,
  id: number,
  columns: Columns,
) {
  const { project } = await findRow(context, table, id, [], IN_PROJECT);
  return transact(context.db, async (db) => {
    await lockProject(db, project.id);
    return undoDeletion({ ...context, db }, table, id, columns);
  });
}

/** Deleted rows, too. */
export const IN_PROJECT = sql<boolean>`t.project_id is not null`;

/** The same for any row, in a transaction that has locked its project, or its master board. */
export async function undoDeletion<Table extends Restorable, const Columns extends readonly Column<Table>[]>(
  context: WriteContext,
  table: Table,
  id: number,
  columns: Columns,
): Promise<Restored<Versioned<Selected<Table, Columns>>>> {
  type Row = Versioned<Selected<Table, Columns>>;
  const { db } = context;
  const selection = selectionOf([...columns, VERSION]);
  const found = await lockRow(db, table, id);
  await parentMustBeLive(db, table, found);
  if (!isDeleted(found)) {
    const row = oneRow(await query(db, sql<Row>`select ${selection} from ${sql.table(table)} where id = ${id}`));
    return { ...row, restored_count: 0, undone_id: null };
  }
  await mustHaveRoom(db, table, found);

  const restored = await mapConstraintErrors(
    query(
      db,
      sql<Row>`
        update ${sql.table(table)} t set deleted_at = null, deletion_id = null, updated_at = now() ${placesOf(table, found)}
        where t.id = ${id} returning ${selection}`,
    ),
    TAKEN,
  );
  const { count, data } = await mapConstraintErrors(CONTENTS[table](db, found), TAKEN);
  await db.deleteFrom('deletions').where('id', '=', found.deletion_id).execute();
  const type = `${found.project_id === null ? 'master_' : ''}${singularOf(table)}.restored` as EventType;
  const row = oneRow(restored);
  const version = numberIn(row.version);
  await writeEvents(context, [
    { type, project_id: found.project_id, subject_id: id, data: { ...data, version, count } },
  ]);
  return { ...row, restored_count: 1 + count, undone_id: found.deletion_id };
}

/** `{ card, version, restored_count }`. */
export function restoredAs<Noun extends string, Row extends { version: string }>(noun: Noun, restored: Restored<Row>) {
  const { restored_count, undone_id, ...row } = restored;
  return { ...withVersion(noun, row as unknown as Row), restored_count };
}

const isDeleted = (row: Found): row is Deleted => row.deleted_at !== null;

async function lockRow(db: Db, table: Restorable, id: number): Promise<Found> {
  const parents = parentsOf(table).map(([column]) => column);
  const root = table === 'comments' ? ['root_comment_id'] : [];
  const columns = ['id', 'project_id', 'deleted_at', 'updated_at', 'deletion_id', ...parents, ...root];
  const [row] = await query(
    db,
    sql<Found>`select ${selectionOf(columns)} from ${sql.table(table)} where id = ${id} for no key update`,
  );
  if (!row) throw noSuchRow(table);
  return row;
}

/** Throws the 400 for a row inside a deleted one. */
async function parentMustBeLive(db: Db, table: Restorable, row: Found): Promise<void> {
  for (const [column, parents] of parentsOf(table)) {
    const { title } = NOUNS[parents];
    const name = title === null ? sql`p.id::text` : sql`'"' || ${sql.ref(`p.${title}`)} || '"'`;
    const isLive = parents === 'cards' ? isLiveCard('p') : live('p');
    // Found by its id alone: an index of deleted rows looks cheap while there are few.
    const [parent] = await query(
      db,
      sql<{ name: string; is_live: boolean }>`
        select ${name} as name, ${isLive} as is_live from ${sql.table(parents)} p where p.id = ${row[column] ?? null}::int`,
    );
    if (!parent || parent.is_live) continue;
    const noun = `${row.project_id === null ? 'master ' : ''}${singularOf(parents)}`;
    throw badRequest(`The ${noun} ${parent.name} is deleted. Restore it first.`, 'parent_deleted');
  }
}

/** Live rows `s` with which a row shares its order. */
function siblingsOf(table: Restorable, { project_id, board_id, group_id }: Found): RawBuilder<unknown> {
  if (table === 'groups') return sql`s.board_id = ${board_id} and ${live('s')}`;
  if (table === 'cards' && group_id != null) return sql`s.group_id = ${group_id} and ${live('s')}`;
  if (project_id === null) return sql`s.is_master and ${live('s')}`;
  return sql`s.project_id = ${project_id} and ${live('s')} ${table === 'cards' ? sql`and s.group_id is null` : sql``}`;
}

async function mustHaveRoom(db: Db, table: Restorable, row: Found): Promise<void> {
  if (table !== 'boards' && table !== 'groups') return;
  const siblings = sql<{ count: number }>`
    select count(*)::int as count from ${sql.table(table)} s where ${siblingsOf(table, row)}`;
  if (oneRow(await query(db, siblings)).count < MOST_SIBLINGS) return;
  const place = table === 'groups' ? 'A board has' : row.project_id === null ? 'There are' : 'A project has';
  const noun = row.project_id === null && table === 'boards' ? 'master boards' : table;
  throw badRequest(`${place} at most ${MOST_SIBLINGS} ${noun}.`, 'place_full');
}

/** The `set` of the positions of a row `t`. */
function placesOf(table: Restorable, row: Found): RawBuilder<unknown> {
  if (table === 'comments') return sql``;
  const position = freePlace(table, 'position', siblingsOf(table, row));
  if (table === 'groups') return sql`, position = ${position}, is_clearing = false`;
  if (table !== 'cards') return sql`, position = ${position}`;
  const inProject = sql`s.project_id = t.project_id and ${live('s')}`;
  return sql`, position = ${position}, sort_order = ${freePlace('cards', 'sort_order', inProject)}`;
}

/** The old position of a row `t`, or the end if a sibling `s` has it. */
export function freePlace(table: Restorable, name: string, isSibling: RawBuilder<unknown>): RawBuilder<number> {
  const [own, other] = [sql.ref(`t.${name}`), sql.ref(`s.${name}`)];
  const siblings = sql`from ${sql.table(table)} s where ${isSibling}`;
  return sql`case when exists (select ${siblings} and ${other} = ${own})
    then ${nextPosition(sql`select max(${other}) ${siblings}`)} else ${own} end`;
}

/** The identifiers that must be unique among live cards. */
const taken = () => invalid({ unique_identifier: 'belongs to another card by now' }, 'already_exists');
const keyTaken = () => invalid({ id: 'has a key of template files that another one has by now' }, 'already_exists');
const TAKEN = {
  cards_copy_identifier: taken,
  cards_master_identifier: taken,
  boards_template_key: keyTaken,
  groups_template_key: keyTaken,
};
