import { type RawBuilder, sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import type { EventData, EventType } from '../../../shared/event.ts';
import { MOST_SIBLINGS, type Placement } from '../../../shared/fields.ts';
import { LARGEST_INTEGER } from '../../../shared/limits.ts';
import { lockProjects } from '../../database/projectLock.ts';
import { type Db, live, nextPosition, query, rowsById, transact } from '../../database/query.ts';
import { type Column, type Selected, singularOf } from '../../database/selection.ts';
import type { Row } from '../../database/tables.ts';
import type { Versioned } from '../../database/version.ts';
import type { ProjectContext } from '../access/context.ts';
import { bound, isEnough, permitOf, roleIn } from '../access/permission.ts';
import { furtherRows, NEW_ROW, type WriteContext, writeEvents } from '../event/event.ts';
import { changesIn, type Sent } from './columns.ts';
import { changeRow, isVisible, mustBeFound, mustHaveVersion, noSuchRow } from './row.ts';

/** Boards and tags are ordered within a project, groups within a board. */
const ORDERED_WITHIN = {
  boards: { column: 'project_id', parents: 'projects' },
  tags: { column: 'project_id', parents: 'projects' },
  groups: { column: 'board_id', parents: 'boards' },
} as const satisfies { [Table in Ordered]: { column: keyof Row<Table>; parents: string } };
type Ordered = 'boards' | 'tags' | 'groups';

/**
 * Puts rows of one project or board at their positions, atomically; rows that are in the way move behind them. Throws a 412 unless
 * each of them has the version, if one is given.
 */
export async function placeRows(
  context: ProjectContext,
  table: Ordered,
  placements: Placement[],
  if_version?: string,
): Promise<void> {
  if (placements.length === 0) return;

  const { caller } = context;
  const ids = placements.map(({ id }) => id);
  const permit = bound(permitOf(caller));
  const parent = sql.ref<number>(`t.${ORDERED_WITHIN[table].column}`);
  await transact(context.db, async (db) => {
    // With the types of tags, like `rowsOf`.
    const named = db.selectFrom(rowsById(table as 'tags', ids).as('t'));
    // Locked before the rows are read: their positions are then up to date.
    const isPermitted = isEnough(roleIn('projects.id', permit), permit);
    await lockProjects(db, sql`id in ${named.select('t.project_id')} and ${isPermitted}`);
    const found = await named
      .select([
        't.id',
        't.position',
        't.project_id',
        parent.as('parent_id'),
        roleIn('t.project_id', permit).as('caller_role'),
      ])
      .where(isVisible(table))
      .execute();
    if (found.length < placements.length) throw noSuchRow(table);
    for (const row of found) mustBeFound(caller, table, row);
    const [parentId, ...others] = new Set(found.map(({ parent_id }) => parent_id));
    if (others.length > 0)
      throw badRequest(`The ${table} belong to several ${ORDERED_WITHIN[table].parents}.`, 'several_parents');

    for (const { id } of placements) await mustHaveVersion(db, table, id, if_version);
    const { moved } = await setPositions(db, table, placements, sql`${parent} = ${parentId}`);
    const changed = [...movedOf(placements, found), ...moved];
    if (changed.length === 0) return;
    const data = furtherRows(changed);
    await writeEvents({ ...context, db }, [
      { type: `${singularOf(table)}.reordered`, project_id: found[0]?.project_id, data },
    ]);
  });
}

/** The ids of rows that get another position than they had before. */
export function movedOf(placements: readonly Placement[], before: readonly Placement[]): number[] {
  const old = new Map(before.map(({ id, position }) => [id, position]));
  return placements.filter(({ id, position }) => old.get(id) !== position).map(({ id }) => id);
}

/** Changes a row and, if a position was sent, puts it there. */
export function changeAndPlace<Table extends Ordered, const Columns extends readonly Column<Table>[]>(
  context: ProjectContext,
  table: Table,
  sent: Sent<Table> & { id: number; position?: number | null; if_version?: string | undefined },
  columns: Columns,
): Promise<Versioned<Selected<Table, Columns>>> {
  const { id, position, if_version } = sent;
  const changes = changesIn(table, sent);
  if (position == null) return changeRow(context, table, id, changes, columns, { if_version });
  return transact(context.db, async (db) => {
    // Checked there: once placed, the row has a new version.
    await placeRows({ ...context, db }, table, [{ id, position }], if_version);
    return changeRow({ ...context, db }, table, id, changes, columns);
  });
}

export type Siblings = {
  table: Ordered;
  /** The condition for rows `t` of the same project or board. */
  isSibling: RawBuilder<boolean>;
  /** Locks the project or master boards, so that two calls do not take the same position. */
  lock: (db: Db) => Promise<unknown>;
};

/** Inserts a row with its event; at a position that was sent, rows that are in the way move behind it. */
export function insertAt<Inserted extends { id: number; project_id: number | null }>(
  context: WriteContext,
  { type, data, position }: { type: EventType; data?: EventData; position: number | null | undefined },
  { table, isSibling, lock }: Siblings,
  insert: (db: Db) => Promise<Inserted>,
): Promise<Inserted> {
  return transact(context.db, async (db) => {
    if (position != null) await lock(db);
    const row = await insert(db);
    const { id, project_id } = row;
    const { moved } = position == null ? { moved: [] } : await setPositions(db, table, [{ id, position }], isSibling);
    const event = { type, project_id, subject_id: id, data: { ...data, ...NEW_ROW, ...furtherRows(moved) } };
    await writeEvents({ ...context, db }, [event]);
    return row;
  });
}

/**
 * Puts those rows `t` that meet the condition `isSibling` at their positions, and moves siblings whose position is taken behind
 * them. The caller has locked the siblings' project or board. Returns how many of the rows were found, and the ids of the siblings
 * that moved.
 */
export async function setPositions(
  db: Db,
  table: Ordered | 'cards',
  placements: Placement[],
  isSibling: RawBuilder<boolean>,
): Promise<{ placed: number; moved: number[] }> {
  if (placements.length === 0) return { placed: 0, moved: [] };
  const placed = await writePositions(db, table, placements, isSibling);
  const positions = placements.map(({ position }) => position);
  const others = await rowsOf(db, table)
    .select(['t.id', 't.position'])
    .where(isSibling)
    .where(live('t'))
    .where('t.position', '>=', Math.min(...positions))
    .where('t.id', '<>', sql<number>`all(${placements.map(({ id }) => id)}::int[])`)
    .orderBy('t.position')
    .orderBy('t.id')
    .execute();
  const moved = makeWay(others, new Set(positions));
  if (moved.length > 0) await writePositions(db, table, moved, isSibling);
  return { placed, moved: moved.map(({ id }) => id) };
}

/** The rows `t` of a table, with the types of tags: ids, projects and positions are alike in all of these tables. */
const rowsOf = (db: Db, table: Ordered | 'cards') => db.selectFrom(`${table as 'tags'} as t`);

async function writePositions(db: Db, table: string, placements: Placement[], isSibling: RawBuilder<boolean>) {
  const written = await query(
    db,
    sql`
      update ${sql.table(table)} t set position = placed.position, updated_at = now()
      from jsonb_to_recordset(${JSON.stringify(placements)}::jsonb) as placed (id int, position int)
      where t.id = placed.id and ${isSibling} and ${live('t')}
      returning t.id`,
  );
  return written.length;
}

/**
 * Of rows in order, those whose position is taken, each with the next free one. After `most` rows, the next ones share a position
 * where their ids are in order, so that a row in front of thousands does not move all of them.
 */
export function makeWay(rows: readonly Placement[], taken: ReadonlySet<number>, most = MOST_SIBLINGS): Placement[] {
  const moved: Placement[] = [];
  let last = { id: 0, position: Number.NEGATIVE_INFINITY };
  for (const { id, position } of rows) {
    const isSharing = moved.length >= most && id > last.id;
    let free = Math.max(position, last.position + (isSharing ? 0 : 1));
    while (taken.has(free)) free++;
    if (free === position) continue;
    last = { id, position: free };
    moved.push({ id, position: Math.min(free, LARGEST_INTEGER) });
  }
  return moved;
}

/** The number of live siblings and their last position, for an insert that appends up to a cap. */
export const siblingsIn = (table: 'boards' | 'groups', condition: RawBuilder<unknown>) =>
  sql`(select count(*) as count, max(t.position) as last from ${sql.table(table)} t where ${condition} and ${live('t')}) as siblings`;

/** The position that was sent, or the next one after the siblings. */
export const positionAmongSiblings = (position?: number | null) =>
  sql<number>`coalesce(${position ?? null}::int, ${nextPosition(sql`siblings.last`)})`;
