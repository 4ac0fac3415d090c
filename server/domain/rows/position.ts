import { type RawBuilder, sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import type { Placement } from '../../../shared/fields.ts';
import { LARGEST_INTEGER } from '../../../shared/limits.ts';
import { type Db, live, nextPosition, query, transact } from '../../database/query.ts';
import type { Row, RowChanges } from '../../database/tables.ts';
import type { ProjectContext } from '../access/context.ts';
import { bound, isEnough, permitOf, roleIn } from '../access/permission.ts';
import { type CallerRole, type Column, changeRow, isVisible, mustBeFound, type Selected } from './row.ts';

/** Boards and tags are ordered within a project, groups within a board. */
const ORDERED_WITHIN = {
  boards: { column: 'project_id', parents: 'projects' },
  tags: { column: 'project_id', parents: 'projects' },
  groups: { column: 'board_id', parents: 'boards' },
} as const satisfies { [Table in Ordered]: { column: keyof Row<Table>; parents: string } };
type Ordered = 'boards' | 'tags' | 'groups';

/** Puts rows of one project or board at their positions, atomically; rows that are in the way move behind them. */
export async function placeRows(
  { db, caller }: ProjectContext,
  table: Ordered,
  placements: Placement[],
): Promise<void> {
  if (placements.length === 0) return;

  const ids = sql`${placements.map(({ id }) => id)}::int[]`;
  const permit = bound(permitOf(caller));
  const parent = sql.ref(`t.${ORDERED_WITHIN[table].column}`);
  await transact(db, async (db) => {
    // Locks the project before its rows are read: one lock order prevents deadlocks.
    await query(
      db,
      sql`
        select p.id from projects p where p.id in (select t.project_id from ${sql.table(table)} t where t.id = any(${ids}))
          and ${isEnough(roleIn('p.id', permit), permit)}
        order by p.id for no key update`,
    );
    const found = await query(
      db,
      sql<{ parent_id: number } & CallerRole>`
        select t.project_id, ${parent} as parent_id, ${roleIn('t.project_id', permit)} as caller_role
        from ${sql.table(table)} t where t.id = any(${ids}) and ${isVisible(table)}`,
    );
    if (found.length < placements.length) mustBeFound(caller, table, undefined);
    for (const row of found) mustBeFound(caller, table, row);
    if (new Set(found.map(({ parent_id }) => parent_id)).size > 1)
      throw badRequest(`The ${table} belong to several ${ORDERED_WITHIN[table].parents}.`, 'several_parents');

    await setPositions(db, table, placements, sql`${parent} = ${found[0]!.parent_id}`);
  });
}

/** Changes a row and, if a position was sent, puts it there. */
export function changeAndPlace<Table extends Ordered, const Columns extends readonly Column<Table>[]>(
  context: ProjectContext,
  table: Table,
  { id, position }: { id: number; position?: number | null },
  changes: RowChanges<Table>,
  columns: Columns,
): Promise<Selected<Table, Columns>> {
  if (position == null) return changeRow(context, table, id, changes, columns);
  return transact(context.db, async (db) => {
    await placeRows({ ...context, db }, table, [{ id, position }]);
    return changeRow({ ...context, db }, table, id, changes, columns);
  });
}

export type Place = {
  table: Ordered;
  /** Which rows `t` are in the same place. */
  isSibling: RawBuilder<unknown>;
  /** Locks the place, so that two calls do not take the same position. */
  lock: (db: Db) => Promise<void>;
};

/** Inserts a row; at a position that was sent, rows that are in the way move behind it. */
export async function insertAt<Inserted extends { id: number } | undefined>(
  db: Db,
  position: number | null | undefined,
  { table, isSibling, lock }: Place,
  insert: (db: Db) => Promise<Inserted>,
): Promise<Inserted> {
  if (position == null) return insert(db);
  return transact(db, async (db) => {
    await lock(db);
    const inserted = await insert(db);
    if (inserted) await setPositions(db, table, [{ id: inserted.id, position }], isSibling);
    return inserted;
  });
}

/**
 * Puts those rows `t` that are siblings by this condition at their positions, and moves the others whose position is taken
 * behind them. The place of the siblings is locked. Returns how many of the rows were found.
 */
export async function setPositions(
  db: Db,
  table: Ordered | 'cards',
  placements: Placement[],
  isSibling: RawBuilder<unknown>,
): Promise<number> {
  if (placements.length === 0) return 0;
  const placed = await writePositions(db, table, placements, isSibling);
  const positions = placements.map(({ position }) => position);
  const others = await query(
    db,
    sql<Placement>`
      select t.id, t.position from ${sql.table(table)} t
      where ${isSibling} and ${live('t')} and t.position >= ${Math.min(...positions)}
        and t.id <> all(${placements.map(({ id }) => id)}::int[])
      order by t.position, t.id`,
  );
  const moved = makeWay(others, new Set(positions));
  if (moved.length > 0) await writePositions(db, table, moved, isSibling);
  return placed;
}

async function writePositions(db: Db, table: string, placements: Placement[], isSibling: RawBuilder<unknown>) {
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

/** The rows, given in order, that have to move because a position is taken, with their next free ones in the same order. */
export function makeWay(rows: readonly Placement[], taken: ReadonlySet<number>): Placement[] {
  const moved: Placement[] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const { id, position } of rows) {
    let free = Math.max(position, last + 1);
    while (taken.has(free)) free++;
    if (free === position) continue;
    last = free;
    moved.push({ id, position: Math.min(free, LARGEST_INTEGER) });
  }
  return moved;
}

/** How many live rows there are in one place, and the last of their positions: for an insert that appends, up to a cap. */
export const siblingsIn = (table: 'boards' | 'groups', condition: RawBuilder<unknown>) =>
  sql`(select count(*) as count, max(t.position) as last from ${sql.table(table)} t where ${condition} and ${live('t')}) as siblings`;

/** The position that was sent, or the next one after the siblings. */
export const positionAmongSiblings = (position?: number | null) =>
  sql<number>`coalesce(${position ?? null}::int, ${nextPosition(sql`siblings.last`)})`;
