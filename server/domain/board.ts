import { type RawBuilder, sql } from 'kysely';
import {
  Board,
  type BoardCreate,
  type BoardList,
  type BoardReorder,
  type BoardUpdate,
  ListedBoard,
} from '../../shared/board.ts';
import { MOST_PLACED } from '../../shared/fields.ts';
import type { ProjectContext } from '../context.ts';
import { prepared } from '../database/prepared.ts';
import { type Db, nextPosition, query, transact } from '../database/query.ts';
import type { RowChanges } from '../database/tables.ts';
import { badRequest } from '../errors.ts';
import { bytesOf, mustFitAnswer, wholeAnswer } from './answerSize.ts';
import { placeRows } from './place.ts';
import { changeRow, DELETED, deleteRow, findRow, lockProject, type Selected, selectionOf, unlessNull } from './row.ts';

/** What answers hold of a board. */
export const BOARD_COLUMNS = Board.keyof().options;
export type BoardRow = Selected<'boards', typeof BOARD_COLUMNS>;

/** Boards with how much is on them, in their order; a board is called `b`. */
export const listedBoards = (which: RawBuilder<unknown>) =>
  wholeAnswer(
    sql<ListedBoardRow>`
      select ${selectionOf(BOARD_COLUMNS)}, ${bytesOf('boards', 'b')} as bytes,
        (select count(*)::int from groups g where g.board_id = b.id and g.deleted_at is null) as groups_count,
        (select count(*)::int from groups g join cards c on c.group_id = g.id and c.deleted_at is null
          where g.board_id = b.id and g.deleted_at is null) as cards_count
      from boards b where ${which} and b.deleted_at is null`,
    ListedBoard.keyof().options,
    ['position', 'id'],
  );
type ListedBoardRow = BoardRow & { groups_count: number; cards_count: number };

/** The boards of the project in their order, with how much is in them. */
export async function listBoards({ db, caller }: ProjectContext, { tool_key }: BoardList) {
  const found = await selectBoards(db, { project_id: caller.project.id, tool_key: tool_key ?? null });
  mustFitAnswer(found[0], 'The boards are too large for one answer. List those of one tool_key.');
  return { boards: found.map(({ is_too_large, ...board }) => board) };
}

const selectBoards = prepared<
  { project_id: number; tool_key: string | null },
  ListedBoardRow & { is_too_large: boolean }
>((value) =>
  listedBoards(sql`
    b.project_id = ${value('project_id')} and (${value('tool_key')}::text is null or b.tool_key = ${value('tool_key')})`),
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
        coalesce(${input.position ?? null}::int, ${nextPosition(sql`last`)})
      from (select count(*) as count, max(position) as last from boards where project_id = ${project.id} and deleted_at is null) as others
      where count < ${MOST_PLACED}
      returning ${selectionOf(BOARD_COLUMNS)}`,
  );
  if (!board) throw badRequest(`A project has at most ${MOST_PLACED} boards.`);

  return { board };
}

/** Changes what was sent of a board. */
export async function updateBoard(
  context: ProjectContext,
  { id, title, description, tool_key, position }: BoardUpdate,
) {
  const changes: RowChanges<'boards'> = { description, tool_key, ...unlessNull<'boards'>({ title, position }) };
  return { board: await changeRow(context, 'boards', id, changes, BOARD_COLUMNS) };
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
    await deleteGroups(db, id);
  });
}

/** Deletes the groups of a board, and their cards with them; `db` is in a transaction. */
export async function deleteGroups(db: Db, board_id: number): Promise<void> {
  await db
    .with('deleted', (db) =>
      db
        .updateTable('groups')
        .set(DELETED)
        .where('board_id', '=', board_id)
        .where('deleted_at', 'is', null)
        .returning('id'),
    )
    .updateTable('cards')
    .set(DELETED)
    .where('group_id', 'in', (from) => from.selectFrom('deleted').select('id'))
    .where('deleted_at', 'is', null)
    .execute();
}
