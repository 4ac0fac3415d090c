import {
  DeletionPreview,
  MasterDeletionPreview,
  PreviewedDeletion,
  TrashList,
  TrashPage,
} from '../../../shared/trash.ts';
import { listMasterTrash, listTrash, previewDeletion, previewMasterDeletion } from '../../domain/board/trash.ts';
import { rest } from '../restOperation.ts';
import { memberProcedure, router, superadminProcedure } from '../trpc.ts';

export const trashRouter = router({
  list: rest(memberProcedure, '/services/operations/v1/operations/trash/list', {
    message: 'What was deleted.',
    summary: 'List what was deleted',
    description:
      'The deletions of the project that can be undone, newest first, page by page: one entry for each deleted row, without what it took along. `boards.restore`, `groups.restore`, `cards.restore`, `comments.restore` and `tags.restore` undo them.',
  })
    .input(TrashList)
    .output(TrashPage)
    .query(({ ctx, input }) => listTrash(ctx, input)),

  preview: rest(memberProcedure, '/services/operations/v1/operations/trash/preview', {
    message: 'What would be deleted.',
    summary: 'Preview a deletion',
    description: 'What the deletion of a row would take along; nothing changes.',
  })
    .input(DeletionPreview)
    .output(PreviewedDeletion)
    .query(({ ctx, input }) => previewDeletion(ctx, input)),
});

export const masterTrashRouter = router({
  list: rest(superadminProcedure, '/services/operations/v1/admin/master-trash/list', {
    message: 'Which templates were deleted.',
    summary: 'List deleted templates',
    description:
      'The deletions of templates that can be undone, newest first, page by page, without what they took along. `masterBoards.restore`, `masterGroups.restore` and `masterCards.restore` undo them.',
  })
    .input(TrashList)
    .output(TrashPage)
    .query(({ ctx, input }) => listMasterTrash(ctx, input)),

  preview: rest(superadminProcedure, '/services/operations/v1/admin/master-trash/preview', {
    message: 'What would be deleted.',
    summary: 'Preview the deletion of a template',
    description: 'What the deletion of a template would take along; nothing changes. Copies in projects stay.',
  })
    .input(MasterDeletionPreview)
    .output(PreviewedDeletion)
    .query(({ ctx, input }) => previewMasterDeletion(ctx, input)),
});
