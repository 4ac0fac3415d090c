import { z } from 'zod';
import { Board } from '../../shared/board.ts';
import { sentAsText } from '../../shared/fields.ts';
import {
  MasterBoard,
  MasterBoardCreate,
  MasterBoardDelete,
  MasterBoardReorder,
  MasterBoardSync,
  MasterBoardUpdate,
  OutcomePage,
  SyncPreview,
  SyncResult,
  TemplateRunList,
  TemplateRunPage,
  TemplateRunReport,
} from '../../shared/master.ts';
import {
  createMasterBoard,
  deleteMasterBoard,
  listMasterBoards,
  previewSync,
  reorderMasterBoards,
  syncMasterBoard,
  updateMasterBoard,
} from '../domain/masterBoard.ts';
import { listTemplateRuns, reportTemplateRun } from '../domain/template.ts';
import { rest } from '../restOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

const oneBoard = z.object({ board: Board });

export const masterBoardRouter = router({
  list: superadminProcedure
    .meta(
      rest('/services/operations/v1/admin/master-boards/list', {
        message: 'Master boards.',
        summary: 'List master boards',
        description: 'All master boards in order, with the numbers of their groups and cards.',
      }),
    )
    .output(
      z.object({
        boards: z
          .array(sentAsText(MasterBoard, 'The JSON text of a master board.'))
          .meta({ description: 'The master boards in order.' }),
      }),
    )
    .query(({ ctx }) => listMasterBoards(ctx)),

  sync: superadminProcedure
    .meta(
      rest('/services/operations/v1/admin/master-boards/sync', {
        message: 'Master board synced.',
        summary: 'Sync a master board',
        description:
          'Adds missing copies of the board, its groups and cards to every active project with access. What a project changed or deleted stays so; running it again changes nothing.',
      }),
    )
    .input(MasterBoardSync)
    .output(SyncResult)
    .mutation(({ ctx, input }) => syncMasterBoard(ctx, input)),

  delete: superadminProcedure
    .meta(
      rest('/services/operations/v1/admin/master-boards/delete', {
        message: 'Master board deleted.',
        summary: 'Delete a master board',
        description: 'Deletes a master board with its groups and cards; the copies in projects stay.',
      }),
    )
    .input(MasterBoardDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteMasterBoard(ctx, input)),

  create: superadminProcedure
    .input(MasterBoardCreate)
    .output(oneBoard)
    .mutation(({ ctx, input }) => createMasterBoard(ctx, input)),

  update: superadminProcedure
    .input(MasterBoardUpdate)
    .output(oneBoard)
    .mutation(({ ctx, input }) => updateMasterBoard(ctx, input)),

  reorder: superadminProcedure
    .input(MasterBoardReorder)
    .output(z.void())
    .mutation(({ ctx, input }) => reorderMasterBoards(ctx, input)),

  previewSync: superadminProcedure
    .input(SyncPreview)
    .output(OutcomePage)
    .query(({ ctx, input }) => previewSync(ctx, input)),
});

export const templateRunRouter = router({
  list: superadminProcedure
    .input(TemplateRunList)
    .output(TemplateRunPage)
    .query(({ ctx, input }) => listTemplateRuns(ctx, input)),

  report: superadminProcedure
    .input(TemplateRunReport)
    .output(OutcomePage)
    .query(({ ctx, input }) => reportTemplateRun(ctx, input)),
});
