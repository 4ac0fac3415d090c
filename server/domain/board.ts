import { sql } from 'kysely';
import type { z } from 'zod';
import type {
  Board,
  BoardCreate,
  BoardList,
  BoardReorder,
  BoardUpdate,
  FullBoard,
  ListedBoard,
} from '../../shared/board.ts';
import { MOST_PLACED } from '../../shared/fields.ts';
import { behind, query, transact } from '../database/query.ts';
import { badRequest } from '../errors.ts';
import { LARGEST_ANSWER_BYTES } from '../limits/answerRoom.ts';
import type { ProjectContext } from '../trpc.ts';
import { bytesOf, mustFitAnswer, wholeAnswer } from './answerSize.ts';
import { DERIVED } from './card.ts';
import { placeRows } from './place.ts';
import { changeRow, deleteRow, findRow, lockProject, mustBeFound, unlessNull } from './row.ts';

type BoardRow = z.input<typeof Board>;

/** How much is on a board, which is called `b`. */
export const COUNTS = sql`
  (select count(*)::int from groups g where g.board_id = b.id and g.deleted_at is null) as groups_count,
  (select count(*)::int from groups g join cards c on c.group_id = g.id and c.deleted_at is null
    where g.board_id = b.id and g.deleted_at is null) as cards_count`;

/** The boards of the project in their order, with how much is in them. */
export async function listBoards({ db, caller }: ProjectContext, { tool_key }: BoardList) {
  const boards = await query(
    db,
    wholeAnswer(
      sql<z.input<typeof ListedBoard>>`
        select b.*, ${COUNTS}, ${bytesOf('boards', 'b')} as bytes
        from boards b
        where b.project_id = ${caller.project.id} and b.deleted_at is null
          and (${tool_key ?? null}::text is null or b.tool_key = ${tool_key ?? null})`,
      ['position', 'id'],
    ),
  );
  mustFitAnswer(boards[0], 'The boards are too large for one answer. List those of one tool_key.');
  return { boards };
}

/** A board with its groups and their cards, without the tour cards that the caller dismissed. PostgreSQL puts it together, unless it is too large. */
export async function getBoard({ db, caller }: ProjectContext, { id }: { id: number }) {
  const [board] = await query(
    db,
    sql<z.input<typeof FullBoard> & { project_id: number; is_too_large: boolean }>`
      select b.*, size.is_too_large, case when b.project_id = ${caller.project.id} and not size.is_too_large then coalesce((
        select json_agg(g order by g.position, g.id) from (
          select g.*, coalesce((
            select json_agg(c order by c.position, c.id) from (
              select c.*, ${DERIVED} from cards c
              where c.group_id = g.id and c.deleted_at is null and (c.tour_key is null or not exists (
                select from tour_dismissals d where d.card_id = c.id and d.user_id = ${caller.id}))
            ) c), '[]') as cards
          from groups g where g.board_id = b.id and g.deleted_at is null
        ) g), '[]') end as groups
      from boards b cross join lateral (
        select coalesce(sum(${bytesOf('groups', 'g')} + (
          select coalesce(sum(${bytesOf('cards', 'c')}), 0) from cards c where c.group_id = g.id and c.deleted_at is null)), 0)
          > ${sql.lit(LARGEST_ANSWER_BYTES)} as is_too_large
        from groups g where g.board_id = b.id and g.deleted_at is null
      ) as size
      where b.id = ${id} and b.project_id is not null and b.deleted_at is null`,
  );
  mustBeFound(caller.project, 'boards', board);
  mustFitAnswer(board, 'The board is too large for one answer. Read its cards page by page: cards.list with group_id.');

  return { board: board! };
}

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
