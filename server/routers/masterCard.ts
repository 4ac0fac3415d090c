import { z } from 'zod';
import { Card } from '../../shared/card.ts';
import { sentAsText } from '../../shared/fields.ts';
import {
  MasterCardCreate,
  MasterCardDelete,
  MasterCardMove,
  MasterCardPush,
  MasterCardUpdate,
  OutcomePage,
  PushPreview,
  projectsUpdated,
} from '../../shared/master.ts';
import {
  createMasterCard,
  deleteMasterCard,
  previewPush,
  pushMasterCard,
  reorderMasterCards,
  updateMasterCard,
} from '../domain/masterCard.ts';
import { rest } from '../restOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

const projects_updated = sentAsText(projectsUpdated, 'Number of changed projects, as text.');

export const masterCardRouter = router({
  create: superadminProcedure
    .meta(
      rest('/services/operations/v1/admin/master-cards/create', {
        status: 201,
        message: 'Master card created.',
        summary: 'Create a master card',
        description:
          'Creates a card at the end of a master group and, with `push_to_projects`, copies it to the projects.',
      }),
    )
    .input(MasterCardCreate)
    .output(z.object({ card: Card, projects_updated }))
    .mutation(({ ctx, input }) => createMasterCard(ctx, input)),

  push: superadminProcedure
    .meta(
      rest('/services/operations/v1/admin/master-cards/push', {
        message: 'Master card pushed.',
        summary: 'Push a master card',
        description:
          'Adds missing copies of a master card to every active project with access, and updates the fields of the template in existing copies. Status, owner, tag, priority, due date, position and comments belong to the project.',
      }),
    )
    .input(MasterCardPush)
    .output(z.object({ projects_updated }))
    .mutation(({ ctx, input }) => pushMasterCard(ctx, input)),

  delete: superadminProcedure
    .meta(
      rest('/services/operations/v1/admin/master-cards/delete', {
        message: 'Master card deleted.',
        summary: 'Delete a master card',
        description: 'Deletes a master card; its copies stay, unless `delete_from_projects` is set.',
      }),
    )
    .input(MasterCardDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteMasterCard(ctx, input)),

  update: superadminProcedure
    .input(MasterCardUpdate)
    .output(z.object({ card: Card }))
    .mutation(({ ctx, input }) => updateMasterCard(ctx, input)),

  reorder: superadminProcedure
    .input(MasterCardMove)
    .output(z.void())
    .mutation(({ ctx, input }) => reorderMasterCards(ctx, input)),

  previewPush: superadminProcedure
    .input(PushPreview)
    .output(OutcomePage)
    .query(({ ctx, input }) => previewPush(ctx, input)),
});
