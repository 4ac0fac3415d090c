import { sql } from 'kysely';
import type { z } from 'zod';
import {
  type Board,
  type BoardCreate,
  type BoardList,
  type BoardReorder,
  type BoardUpdate,
  ListedBoard,
} from '../../shared/board.ts';
import { MOST_PLACED } from '../../shared/fields.ts';
import { prepared } from '../database/prepared.ts';
import { behind, query, transact } from '../database/query.ts';
import { badRequest } from '../errors.ts';
import type { ProjectContext } from '../trpc.ts';
import { bytesOf, mustFitAnswer, wholeAnswer } from './answerSize.ts';
import { placeRows } from './place.ts';
import { changeRow, deleteRow, findRow, lockProject, unlessNull } from './row.ts';

type BoardRow = z.input<typeof Board>;

/** How much is on a board, which is called `b`. */
export const COUNTS = sql`
  (select count(*)::int from groups g where g.board_id = b.id and g.deleted_at is null) as groups_count,
  (select count(*)::int from groups g join cards c on c.group_id = g.id and c.deleted_at is null
    where g.board_id = b.id and g.deleted_at is null) as cards_count`;

/** The boards of the project in their order, with how much is in them. */
export async function listBoards({ db, caller }: ProjectContext, { tool_key }: BoardList) {
  const found = await selectBoards(db, { project_id: caller.project.id, tool_key: tool_key ?? null });
  mustFitAnswer(found[0], 'The boards are too large for one answer. List those of one tool_key.');
  return { boards: found.map(({ is_too_large, ...board }) => board) };
}

const LISTED = sql.join(Object.keys(ListedBoard.shape).map((column) => sql.ref(column)));

const selectBoards = prepared<
  { project_id: number; tool_key: string | null },
  z.output<typeof ListedBoard> & { is_too_large: boolean }
>(
  (value) => sql`
    select ${LISTED}, is_too_large from (${wholeAnswer(
      sql`
        select b.*, ${COUNTS}, ${bytesOf('boards', 'b')} as bytes
        from boards b
        where b.project_id = ${value('project_id')} and b.deleted_at is null
          and (${value('tool_key')}::text is null or b.tool_key = ${value('tool_key')})`,
      ['position', 'id'],
    )}) as list`,
);

/**
 * Creates a board in the project, behind the others unless a place was sent. Those who create at the same moment may end a
 * few above the limit, which does no harm.
 */
export async function createBoard({ db, caller: { id, project } }: ProjectContext, input: BoardCreate) {
  const [board] = await query(
    db,
    sql<BoardRow>`
      insert into boards (project_id, platform_id, title, description, tool_key, created_by, position)
      select ${project.id}, ${project.platform_id}, ${input.title}, ${input.description ?? null}, ${input.tool_key ?? null}, ${id},
        coalesce(${input.position ?? null}::int, ${behind(sql`last`)})
      from (select count(*) as count, max(position) as last from boards where project_id = ${project.id} and deleted_at is null) as others
      where count < ${MOST_PLACED}
      returning *`,
  );
  if (!board) throw badRequest(`A project has at most ${MOST_PLACED} boards.`);

  return { board };
}

/** Changes what was sent of a board. */
export async function updateBoard(context: ProjectContext, { id, title, position, ...clearable }: BoardUpdate) {
  const changes = { ...clearable, ...unlessNull({ title, position }) };
  return { board: await changeRow<BoardRow>(context, 'boards', id, changes) };
}

/** Puts boards of the project at new places: all of them, or none. */
export async function reorderBoards(context: ProjectContext, { boards }: BoardReorder) {
  await placeRows(context, 'boards', boards);
}

/** Deletes a board, and its groups and their cards with it. */
export async function deleteBoard(context: ProjectContext, { id }: { id: number }) {
  await findRow(context, 'boards', id);

  await transact(context.db, async (db) => {
    await lockProject(db, context.caller.project);
    await deleteRow({ ...context, db }, 'boards', id);
    await query(
      db,
      sql`
        with deleted as (
          update groups set deleted_at = now(), updated_at = now() where board_id = ${id} and deleted_at is null returning id
        )
        update cards set deleted_at = now(), updated_at = now()
        where group_id in (select id from deleted) and deleted_at is null`,
    );
  });
}
