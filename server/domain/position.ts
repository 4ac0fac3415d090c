import { type RawBuilder, sql } from 'kysely';
import type { Placement } from '../../shared/fields.ts';
import type { ProjectContext } from '../context.ts';
import { type Db, live, nextPosition, query, transact } from '../database/query.ts';
import type { Row } from '../database/tables.ts';
import { badRequest } from '../errors.ts';
import { bound, isEnough, permitOf, roleIn } from './permission.ts';
import { type CallerRole, isVisible, mustBeFound } from './row.ts';

/** Boards are ordered within a project, groups within a board. */
const ORDERED_WITHIN = {
  boards: { column: 'project_id', parents: 'projects' },
  groups: { column: 'board_id', parents: 'boards' },
} as const satisfies { [Table in 'boards' | 'groups']: { column: keyof Row<Table>; parents: string } };

/** Sets the positions of rows of one project or board, of all or none. */
export async function placeRows(
  { db, caller }: ProjectContext,
  table: keyof typeof ORDERED_WITHIN,
  placements: Placement[],
): Promise<void> {
  if (placements.length === 0) return;

  const ids = sql`${placements.map(({ id }) => id)}::int[]`;
  const permit = bound(permitOf(caller));
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
        select t.project_id, ${sql.ref(`t.${ORDERED_WITHIN[table].column}`)} as parent_id, ${roleIn('t.project_id', permit)} as caller_role
        from ${sql.table(table)} t where t.id = any(${ids}) and ${isVisible(table)}`,
    );
    if (found.length < placements.length) mustBeFound(caller, table, undefined);
    for (const row of found) mustBeFound(caller, table, row);
    if (new Set(found.map(({ parent_id }) => parent_id)).size > 1)
      throw badRequest(`The ${table} belong to several ${ORDERED_WITHIN[table].parents}.`, 'several_parents');

    await setPositions(db, table, placements, sql`t.project_id = ${found[0]!.project_id}`);
  });
}

/** Sets the positions of those rows `t` that fit the condition, in one statement. */
export const setPositions = (
  db: Db,
  table: 'boards' | 'groups' | 'cards',
  placements: Placement[],
  condition: RawBuilder<unknown>,
) =>
  query(
    db,
    sql<{ id: number }>`
      update ${sql.table(table)} t set position = placed.position, updated_at = now()
      from jsonb_to_recordset(${JSON.stringify(placements)}::jsonb) as placed (id int, position int)
      where t.id = placed.id and ${condition}
      returning t.id`,
  );

/** How many live rows there are in one place, and the last of their positions: for an insert that appends, up to a cap. */
export const siblingsIn = (table: 'boards' | 'groups', condition: RawBuilder<unknown>) =>
  sql`(select count(*) as count, max(position) as last from ${sql.table(table)} where ${condition} and ${live()}) as siblings`;

/** The position that was sent, or the next one after the siblings. */
export const positionAmongSiblings = (position?: number | null) =>
  sql<number>`coalesce(${position ?? null}::int, ${nextPosition(sql`siblings.last`)})`;
