import { sql } from 'kysely';
import type { z } from 'zod';
import { MOST_PLACED } from '../../shared/fields.ts';
import type { Group, GroupCreate, GroupReorder, GroupUpdate } from '../../shared/group.ts';
import { behind, query, transact } from '../database/query.ts';
import { badRequest } from '../errors.ts';
import type { ProjectContext } from '../trpc.ts';
import { placeRows } from './place.ts';
import { changeRow, deleteRow, findRow, lockProject, mustBeFound, unlessNull } from './row.ts';

type GroupRow = z.input<typeof Group>;

/** Creates a group on a board, behind the others unless a place was sent. */
export async function createGroup({ db, caller }: ProjectContext, { board_id, ...input }: GroupCreate) {
  const { project } = caller;
  const [found] = await query(
    db,
    sql<(GroupRow | { id: null }) & { found_in: number }>`
      with board as (
        select id, project_id from boards where id = ${board_id} and project_id is not null and deleted_at is null for share
      ), created as (
        insert into groups (project_id, platform_id, board_id, title, description, type, color, icon, is_collapsed, created_by, position)
        select ${project.id}, ${project.platform_id}, board.id, ${input.title}, ${input.description ?? null}, ${input.type ?? null},
          ${input.color ?? null}, ${input.icon ?? null}, ${input.is_collapsed ?? false}, ${caller.id},
          coalesce(${input.position ?? null}::int, ${behind(sql`others.last`)})
        from board cross join lateral (
          select count(*) as count, max(position) as last from groups where board_id = board.id and deleted_at is null
        ) as others
        where board.project_id = ${project.id} and others.count < ${MOST_PLACED}
        returning *
      )
      select created.*, board.project_id as found_in from board left join created on true`,
  );
  mustBeFound(project, 'boards', found && { project_id: found.found_in });
  if (found!.id === null) throw badRequest(`A board has at most ${MOST_PLACED} groups.`);

  return { group: found as GroupRow };
}

/** Changes what was sent of a group. */
export async function updateGroup(
  context: ProjectContext,
  { id, title, position, is_collapsed, ...clearable }: GroupUpdate,
) {
  const changes = { ...clearable, ...unlessNull({ title, position, is_collapsed }) };
  return { group: await changeRow<GroupRow>(context, 'groups', id, changes) };
}

/** Puts groups of one board at new places: all of them, or none. */
export async function reorderGroups(context: ProjectContext, { groups }: GroupReorder) {
  await placeRows(context, 'groups', groups, (rows) => {
    if (new Set(rows.map(({ board_id }) => board_id)).size > 1) throw badRequest('The groups are of several boards.');
  });
}

/** Deletes a group, and the cards in it with it. */
export async function deleteGroup(context: ProjectContext, { id }: { id: number }) {
  await findRow(context, 'groups', id);

  await transact(context.db, async (db) => {
    await lockProject(db, context.caller.project);
    await deleteRow({ ...context, db }, 'groups', id);
    await query(
      db,
      sql`update cards set deleted_at = now(), updated_at = now() where group_id = ${id} and deleted_at is null`,
    );
  });
}
