import { z } from 'zod';
import { BoardList, ListedBoard } from '../../shared/board.ts';
import { listBoards } from '../domain/board.ts';
import { rest } from '../restOperation.ts';
import { router, viewerProcedure } from '../trpc.ts';

export const boardRouter = router({
  list: viewerProcedure
    .meta(
      rest('/services/operations/v1/operations/boards/list', {
        message: 'Boards of the project.',
        summary: 'List boards',
        description: 'The boards of the project in their order, with how many groups and cards they hold.',
        query: ['tool_key'],
      }),
    )
    .input(BoardList.optional())
    .output(z.object({ boards: z.array(ListedBoard) }))
    .query(({ ctx, input = {} }) => listBoards(ctx, input)),
});
