import { sql } from 'kysely';
import type { Placement } from '../../shared/fields.ts';
import { query, transact } from '../database/query.ts';
import type { ProjectContext } from '../trpc.ts';
import { lockProject, mustBeFound, type Table } from './row.ts';

type PlacedRow = { id: number; project_id: number; board_id?: number };

/** Puts rows of the project at new places: all of them, or none. */
export async function placeRows(
  { db, caller: { project } }: ProjectContext,
  table: Table & ('boards' | 'groups'),
  placements: Placement[],
  mustFit: (rows: PlacedRow[]) => void = () => {},
): Promise<void> {
  if (placements.length === 0) return;

  await transact(db, async (db) => {
    await lockProject(db, project);
    const found = await query(
      db,
      sql<PlacedRow>`
        select t.* from ${sql.table(table)} t
        where t.id = any(${placements.map(({ id }) => id)}::int[]) and t.deleted_at is null and t.project_id is not null`,
    );
    if (found.length < placements.length) mustBeFound(project, table, undefined);
    for (const row of found) mustBeFound(project, table, row);
    mustFit(found);

    await query(
      db,
      sql`
        update ${sql.table(table)} t set position = placed.position, updated_at = now()
        from jsonb_to_recordset(${JSON.stringify(placements)}::jsonb) as placed (id int, position int)
        where t.id = placed.id`,
    );
  });
}
