import { z } from 'zod';
import {
  Board,
  BoardCreate,
  BoardDelete,
  BoardGet,
  BoardList,
  BoardReorder,
  BoardUpdate,
  FullBoard,
  ListedBoard,
} from '../../../shared/board.ts';
import { rowVersion, sentAsText } from '../../../shared/fields.ts';
import { restoredOf, restoreOf } from '../../../shared/trash.ts';
import {
  createBoard,
  deleteBoard,
  listBoards,
  reorderBoards,
  restoreBoard,
  updateBoard,
} from '../../domain/board/board.ts';
import { getBoard } from '../../domain/board/fullBoard.ts';
import { rest, specified } from '../restOperation.ts';
import { restoring } from '../restoreOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';

export const boardRouter = router({
  get: specified(viewerProcedure, '/services/operations/v1/operations/boards/get', {
    message: 'The board.',
    summary: 'Get a board',
    description: 'A board with its groups and their cards, in order, without the tour cards that the caller dismissed.',
  })
    .meta({ tool: true, confirms: true, reasons: ['answer_too_large'] })
    .input(BoardGet)
    .output(
      z.object({
        board: sentAsText(FullBoard, 'The JSON text of the board, with `groups`, each with its `cards`.'),
        version: rowVersion,
      }),
    )
    .query(({ ctx, input }) => getBoard(ctx, input)),

  list: specified(viewerProcedure, '/services/operations/v1/operations/boards/list', {
    message: 'Boards of the project.',
    summary: 'List boards',
    description: 'The boards of the project in order, with the numbers of their groups and cards.',
    errors: [400, 401, 403, 422, 429, 500],
    query: ['tool_key'],
  })
    .meta({ tool: true, confirms: true, reasons: ['answer_too_large'] })
    .input(BoardList)
    .output(z.object({ boards: z.array(ListedBoard).meta({ description: 'The boards in order.' }) }))
    .query(({ ctx, input }) => listBoards(ctx, input)),

  create: rest(memberProcedure, '/services/operations/v1/operations/boards/create', {
    status: 201,
    message: 'Board created.',
    summary: 'Create a board',
    description: 'Creates a board in the project, after the others unless a position is sent.',
  })
    .meta({ events: ['board.created'], reasons: ['place_full'] })
    .input(BoardCreate)
    .output(z.object({ board: Board, version: rowVersion }))
    .mutation(({ ctx, input }) => createBoard(ctx, input)),

  update: rest(memberProcedure, '/services/operations/v1/operations/boards/update', {
    message: 'Board updated.',
    summary: 'Update a board',
    description: 'Changes the sent fields.',
  })
    .meta({ events: ['board.updated', 'board.reordered'] })
    .input(BoardUpdate)
    .output(z.object({ board: Board, version: rowVersion }))
    .mutation(({ ctx, input }) => updateBoard(ctx, input)),

  reorder: rest(memberProcedure, '/services/operations/v1/operations/boards/reorder', {
    message: 'Boards reordered.',
    summary: 'Reorder boards',
    description:
      'Sets the positions of boards of one project atomically; other boards whose position is taken move behind them.',
  })
    .meta({ events: ['board.reordered'], reasons: ['several_parents'] })
    .input(BoardReorder)
    .output(z.void())
    .mutation(({ ctx, input }) => reorderBoards(ctx, input)),

  delete: rest(memberProcedure, '/services/operations/v1/operations/boards/delete', {
    message: 'Board deleted.',
    summary: 'Delete a board',
    description: 'Deletes a board with its groups and their cards.',
  })
    .meta({ isDestructive: true, events: ['board.deleted'] })
    .input(BoardDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteBoard(ctx, input)),

  restore: restoring(memberProcedure, '/services/operations/v1/operations/boards/restore', 'board', {
    events: ['board.restored'],
    with: 'the groups and cards',
  })
    .meta({ reasons: ['place_full', 'already_exists'] })
    .input(restoreOf(2))
    .output(restoredOf('board', Board))
    .mutation(({ ctx, input }) => restoreBoard(ctx, input)),
});
