import { z } from 'zod';
import { Board, FullBoard } from '../../../shared/board.ts';
import { rowVersion, sentAsText } from '../../../shared/fields.ts';
import {
  MasterBoard,
  MasterBoardCreate,
  MasterBoardDelete,
  MasterBoardGet,
  MasterBoardPush,
  MasterBoardReorder,
  MasterBoardSync,
  MasterBoardUpdate,
  projectsUpdated,
  SyncResult,
} from '../../../shared/master.ts';
import {
  BoardPushPreview,
  OutcomePage,
  SyncPreview,
  TemplateRun,
  TemplateRunGet,
  TemplateRunList,
  TemplateRunPage,
  TemplateRunReport,
} from '../../../shared/templateRun.ts';
import { restoredOf, restoreOf } from '../../../shared/trash.ts';
import { getMasterBoard } from '../../domain/board/fullBoard.ts';
import {
  createMasterBoard,
  deleteMasterBoard,
  listMasterBoards,
  previewBoardPush,
  previewSync,
  pushMasterBoard,
  reorderMasterBoards,
  restoreMasterBoard,
  syncMasterBoard,
  updateMasterBoard,
} from '../../domain/template/masterBoard.ts';
import { RUN_EVENTS } from '../../domain/template/template.ts';
import { getTemplateRun, listTemplateRuns, reportTemplateRun } from '../../domain/template/templateRun.ts';
import { rest, specified } from '../restOperation.ts';
import { restoring } from '../restoreOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

const oneBoard = z.object({ board: Board, version: rowVersion });

export const masterBoardRouter = router({
  list: specified(superadminProcedure, '/services/operations/v1/admin/master-boards/list', {
    message: 'Master boards.',
    summary: 'List master boards',
    description: 'All master boards in order, with the numbers of their groups and cards.',
    errors: [400, 401, 403, 429, 500],
  })
    .meta({ tool: true, reasons: ['answer_too_large'] })
    .output(
      z.object({
        boards: z
          .array(sentAsText(MasterBoard, 'The JSON text of a master board.'))
          .meta({ description: 'The master boards in order.' }),
      }),
    )
    .query(({ ctx }) => listMasterBoards(ctx)),

  sync: specified(superadminProcedure, '/services/operations/v1/admin/master-boards/sync', {
    message: 'Master board synced.',
    summary: 'Sync a master board',
    description:
      'Adds missing copies of the board, its groups and cards to every active project with access, and brings what changed on the board and its groups to the copies. Fields that a project changed itself stay, and so do deleted copies; fields of existing cards are left to the push of a card. Running it again changes nothing.',
  })
    .meta({ isDestructive: true, idempotency: 'inSteps', events: RUN_EVENTS, reasons: ['service_stopping'] })
    .input(MasterBoardSync)
    .output(SyncResult)
    .mutation(({ ctx, input }) => syncMasterBoard(ctx, input)),

  delete: specified(superadminProcedure, '/services/operations/v1/admin/master-boards/delete', {
    message: 'Master board deleted.',
    summary: 'Delete a master board',
    description: 'Deletes a master board with its groups and cards; the copies in projects stay.',
  })
    .meta({ isDestructive: true, events: ['master_board.deleted', 'rollout.aborted'] })
    .input(MasterBoardDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteMasterBoard(ctx, input)),

  restore: restoring(superadminProcedure, '/services/operations/v1/admin/master-boards/restore', 'master board', {
    events: ['master_board.restored'],
    with: 'the groups and cards',
  })
    .meta({ reasons: ['place_full', 'already_exists'] })
    .input(restoreOf(1))
    .output(restoredOf('board', Board))
    .mutation(({ ctx, input }) => restoreMasterBoard(ctx, input)),

  create: rest(superadminProcedure, '/services/operations/v1/admin/master-boards/create', {
    status: 201,
    message: 'Master board created.',
    summary: 'Create a master board',
    description: 'Creates a master board, after the others unless a position is sent.',
  })
    .meta({ events: ['master_board.created'], reasons: ['place_full'] })
    .input(MasterBoardCreate)
    .output(oneBoard)
    .mutation(({ ctx, input }) => createMasterBoard(ctx, input)),

  update: rest(superadminProcedure, '/services/operations/v1/admin/master-boards/update', {
    message: 'Master board updated.',
    summary: 'Update a master board',
    description: 'Changes the sent fields, but not the copies in projects: sync or push it to change these.',
  })
    .meta({ events: ['master_board.updated', 'master_board.reordered'] })
    .input(MasterBoardUpdate)
    .output(oneBoard)
    .mutation(({ ctx, input }) => updateMasterBoard(ctx, input)),

  reorder: rest(superadminProcedure, '/services/operations/v1/admin/master-boards/reorder', {
    message: 'Master boards reordered.',
    summary: 'Reorder master boards',
    description: 'Sets the positions of master boards atomically; others whose position is taken move behind them.',
  })
    .meta({ events: ['master_board.reordered'] })
    .input(MasterBoardReorder)
    .output(z.void())
    .mutation(({ ctx, input }) => reorderMasterBoards(ctx, input)),

  previewSync: rest(superadminProcedure, '/services/operations/v1/admin/master-boards/preview-sync', {
    message: 'What a sync would do.',
    summary: 'Preview a sync',
    description: 'What a sync would do to each project; nothing changes.',
  })
    .input(SyncPreview)
    .output(OutcomePage)
    .query(({ ctx, input }) => previewSync(ctx, input)),

  get: rest(superadminProcedure, '/services/operations/v1/admin/master-boards/get', {
    message: 'The master board.',
    summary: 'Get a master board',
    description: 'A master board with its groups and their cards, in order.',
  })
    .meta({ reasons: ['answer_too_large'] })
    .input(MasterBoardGet)
    .output(z.object({ board: FullBoard, version: rowVersion }))
    .query(({ ctx, input }) => getMasterBoard(ctx, input)),

  push: rest(superadminProcedure, '/services/operations/v1/admin/master-boards/push', {
    message: 'Master board pushed.',
    summary: 'Push a master board',
    description:
      'Like a sync, but without cards: adds missing copies of the board and its groups to every active project with access, and brings what changed on them to the copies. Fields that a project changed itself stay, and so do deleted copies.',
  })
    .meta({ isDestructive: true, idempotency: 'inSteps', events: RUN_EVENTS, reasons: ['service_stopping'] })
    .input(MasterBoardPush)
    .output(z.object({ projects_updated: projectsUpdated }))
    .mutation(({ ctx, input }) => pushMasterBoard(ctx, input)),

  previewPush: rest(superadminProcedure, '/services/operations/v1/admin/master-boards/preview-push', {
    message: 'What a push would do.',
    summary: 'Preview a push of a master board',
    description: 'What a push of the board would do to each project; nothing changes.',
  })
    .input(BoardPushPreview)
    .output(OutcomePage)
    .query(({ ctx, input }) => previewBoardPush(ctx, input)),
});

export const templateRunRouter = router({
  list: rest(superadminProcedure, '/services/operations/v1/admin/template-runs/list', {
    message: 'Template runs.',
    summary: 'List template runs',
    description: 'Who synced or pushed what, newest first.',
    namesRow: false,
  })
    .input(TemplateRunList)
    .output(TemplateRunPage)
    .query(({ ctx, input }) => listTemplateRuns(ctx, input)),

  get: rest(superadminProcedure, '/services/operations/v1/admin/template-runs/get', {
    message: 'The template run.',
    summary: 'Get a template run',
    description: 'One sync or push, with its progress while it runs.',
  })
    .input(TemplateRunGet)
    .output(z.object({ run: TemplateRun }))
    .query(({ ctx, input }) => getTemplateRun(ctx, input)),

  report: rest(superadminProcedure, '/services/operations/v1/admin/template-runs/report', {
    message: 'What the run did.',
    summary: 'Get the report of a template run',
    description: 'What a sync or push did to each project.',
  })
    .input(TemplateRunReport)
    .output(OutcomePage)
    .query(({ ctx, input }) => reportTemplateRun(ctx, input)),
});
