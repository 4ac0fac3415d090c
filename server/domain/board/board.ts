import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import {
  Board,
  BoardCreate,
  type BoardDelete,
  type BoardList,
  type BoardReorder,
  type BoardUpdate,
  ListedBoard,
} from '../../../shared/board.ts';
import { badRequest } from '../../../shared/errors.ts';
import { MOST_SIBLINGS } from '../../../shared/fields.ts';
import { lockProject } from '../../database/projectLock.ts';
import { live, oneRow, query } from '../../database/query.ts';
import { type Selected, selectionOf } from '../../database/selection.ts';
import type { Row } from '../../database/tables.ts';
import { VERSION, type Versioned, withVersion } from '../../database/version.ts';
import { asJsonText, type DateFields } from '../../runtime/jsonText.ts';
import { actingProject } from '../access/access.ts';
import { type Confirmed, confirming } from '../access/confirmation.ts';
import type { ProjectContext, SignedInContext } from '../access/context.ts';
import { columnsOf, namesOf, newValues } from './columns.ts';
import { deleteWithContents } from './deletion.ts';
import { changeAndPlace, insertAt, placeRows, positionAmongSiblings, type Siblings, siblingsIn } from './position.ts';
import { allAsJson, allOrFirstRow, bytesOf, mustFitResponse } from './responseSize.ts';
import { restoredAs, restoreRow } from './restoration.ts';
import { isDismissedBy } from './tour.ts';

/** The columns of a board in responses. */
export const BOARD_COLUMNS = Board.keyof().options;
export type BoardRow = Selected<'boards', typeof BOARD_COLUMNS>;

/**
 * Selects boards (alias `b`) with their counts, in order; the counts are of what `getBoard` shows to the user. All cards are
 * counted in an index alone, then those that are hidden from the user are subtracted: `hidden` counts them by board. It is
 * materialized: otherwise PostgreSQL may count them again for each board.
 */
const countedBoards = (which: RawBuilder<unknown>, hidden: RawBuilder<unknown>) => sql<ListedBoardRow>`
  with hidden as materialized (${hidden})
  select ${selectionOf(BOARD_COLUMNS)}, ${bytesOf('boards', 'b')} as bytes, counted.groups as groups_count,
    counted.cards - coalesce(hidden.count, 0) as cards_count
  from boards b cross join lateral (
    select count(*)::int as groups, coalesce(sum((
      select count(*) from cards c where c.group_id = g.id and ${live('c')})), 0)::int as cards
    from groups g where g.board_id = b.id and ${live('g')}
  ) as counted left join hidden on hidden.board_id = b.id where ${which} and ${live('b')}`;

/** The same boards, or only the first one if they are too large for one response. */
export const listedBoards = (which: RawBuilder<unknown>) =>
  allOrFirstRow('boards', countedBoards(which, NOTHING_HIDDEN), LISTED_COLUMNS, ORDER);
const ORDER = ['position', 'id'] as const;
const LISTED_COLUMNS = ListedBoard.keyof().options;
const NOTHING_HIDDEN = sql`select null::int as board_id, 0 as count where false`;
type ListedBoardRow = BoardRow & { groups_count: number; cards_count: number };

/** The boards of the project in order, with their counts. */
export async function listBoards(context: ProjectContext, { tool_key }: BoardList) {
  const { caller } = context;
  const { id: project_id } = actingProject(caller);
  const listed = oneRow(await selectBoards(context, { project_id, user_id: caller.id, tool_key: tool_key ?? null }));
  mustFitResponse(listed, 'The boards are too large for one answer. List those of one tool_key.');
  const dates: DateFields = { own: [], elements: Array(listed.count).fill(DATES) };
  return { boards: asJsonText<z.output<typeof ListedBoard>[]>(listed.json, dates) };
}
const DATES: DateFields = { own: ['created_at', 'updated_at'] };

const selectBoards = confirming<
  { project_id: number; user_id: number | null; tool_key: string | null },
  Confirmed & { json: string; count: number; is_too_large: boolean }
>(
  (value, { first, isConfirmed }) =>
    allAsJson(
      'boards',
      countedBoards(
        sql`${isConfirmed} and b.project_id = ${value('project_id')} and (${value('tool_key')}::text is null or b.tool_key = ${value('tool_key')}::text)`,
        sql`
      select g.board_id, count(*)::int from tour_dismissals d cross join lateral (
        select group_id, project_id from cards c where c.id = d.card_id and ${live('c')} and ${isDismissedBy('c', 'd')} offset 0
      ) as c join lateral (select board_id from groups g where g.id = c.group_id and ${live('g')} offset 0) as g on true
      where d.user_id = ${value('user_id')}::int and c.project_id = ${value('project_id')} group by g.board_id`,
      ),
      ListedBoard,
      ORDER,
      { parts: first, columns: sql`${isConfirmed} as is_confirmed` },
    ) as RawBuilder<never>,
  { isShort: true },
);

/** Creates a board in the project, after the others unless a position was sent. */
export async function createBoard(context: ProjectContext, input: BoardCreate) {
  const { id: project_id, platform_id } = actingProject(context.caller);
  return insertBoard(context, input, {
    owner: { project_id, platform_id, is_master: false },
    isSibling: sql`t.project_id = ${project_id}`,
    lock: (db) => lockProject(db, project_id),
    full: `A project has at most ${MOST_SIBLINGS} boards.`,
  });
}

/** The columns that are sent with a new board. */
const CREATED = columnsOf('boards', BoardCreate);

type BoardPlace = Pick<Siblings, 'isSibling' | 'lock'> & {
  owner: Pick<Row<'boards'>, 'project_id' | 'platform_id' | 'is_master'>;
  /** The message of the 400 if there are too many. */
  full: string;
};

/** Inserts a board unless its siblings have reached the cap; concurrent calls may exceed it by a few. */
export async function insertBoard(
  context: SignedInContext,
  input: BoardCreate,
  { owner: { project_id, platform_id, is_master }, isSibling, lock, full }: BoardPlace,
) {
  const event = { type: is_master ? 'master_board.created' : 'board.created', position: input.position } as const;
  const inserted = await insertAt(context, event, { table: 'boards', isSibling, lock }, async (db) => {
    const [board] = await query(
      db,
      sql<Versioned<BoardRow>>`
        insert into boards (project_id, platform_id, is_master, ${namesOf(CREATED)}, created_by, position)
        select ${project_id}::int, ${platform_id}::int, ${is_master}::boolean, ${newValues('boards', CREATED, (column) => sql`${input[column as keyof typeof input] ?? null}`)},
          ${context.caller.id}::int, ${positionAmongSiblings(input.position)}
        from ${siblingsIn('boards', isSibling)} where siblings.count < ${MOST_SIBLINGS}
        returning ${selectionOf([...BOARD_COLUMNS, VERSION])}`,
    );
    if (!board) throw badRequest(full, 'place_full');
    return board;
  });
  return withVersion('board', inserted);
}

/** Changes the sent fields of a board. */
export async function updateBoard(context: ProjectContext, sent: BoardUpdate) {
  return withVersion('board', await changeAndPlace(context, 'boards', sent, BOARD_COLUMNS));
}

/** Puts boards of one project at their positions, atomically. */
export async function reorderBoards(context: ProjectContext, { boards }: BoardReorder) {
  await placeRows(context, 'boards', boards);
}

/** Deletes a board with its groups and their cards. */
export async function deleteBoard(context: ProjectContext, board: BoardDelete) {
  await deleteWithContents(context, 'boards', board);
}

/** Restores a board with the groups and cards that were deleted with it. */
export async function restoreBoard(context: ProjectContext, { id }: { id: number }) {
  return restoredAs('board', await restoreRow(context, 'boards', id, BOARD_COLUMNS));
}
