import { z } from 'zod';
import { Card } from '../../../shared/card.ts';
import { rowVersion, sentAsText } from '../../../shared/fields.ts';
import {
  MasterCardCreate,
  MasterCardDelete,
  MasterCardMove,
  MasterCardPush,
  MasterCardUpdate,
  projectsUpdated,
} from '../../../shared/master.ts';
import { OutcomePage, PushPreview } from '../../../shared/templateRun.ts';
import { restoredOf, restoreOf } from '../../../shared/trash.ts';
import { sanitiseDescription } from '../../domain/board/description.ts';
import {
  createMasterCard,
  deleteMasterCard,
  previewPush,
  pushMasterCard,
  reorderMasterCards,
  restoreMasterCard,
  updateMasterCard,
} from '../../domain/template/masterCard.ts';
import { RUN_EVENTS } from '../../domain/template/template.ts';
import { rest, specified } from '../restOperation.ts';
import { restoring } from '../restoreOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

const projects_updated = sentAsText(projectsUpdated, 'Number of changed projects, as text.');

export const masterCardRouter = router({
  create: specified(superadminProcedure, '/services/operations/v1/admin/master-cards/create', {
    status: 201,
    message: 'Master card created.',
    summary: 'Create a master card',
    description: 'Creates a card at the end of a master group and, with `push_to_projects`, copies it to the projects.',
  })
    .meta({
      prepare: sanitiseDescription,
      events: ['master_card.created', ...RUN_EVENTS],
      reasons: ['already_exists'],
    })
    .input(MasterCardCreate)
    .output(z.object({ card: Card, version: rowVersion, projects_updated }))
    .mutation(({ ctx, input }) => createMasterCard(ctx, input)),

  push: specified(superadminProcedure, '/services/operations/v1/admin/master-cards/push', {
    message: 'Master card pushed.',
    summary: 'Push a master card',
    description:
      'Adds missing copies of a master card to every active project with access, and updates the fields of the template in existing copies. Status, owner, tag, priority, due date, position and comments belong to the project. A copy of a deleted master card with the same `unique_identifier` becomes a copy of this one, instead of a second card.',
  })
    .meta({ isDestructive: true, idempotency: 'inSteps', events: RUN_EVENTS, reasons: ['service_stopping'] })
    .input(MasterCardPush)
    .output(z.object({ projects_updated }))
    .mutation(({ ctx, input }) => pushMasterCard(ctx, input)),

  delete: specified(superadminProcedure, '/services/operations/v1/admin/master-cards/delete', {
    message: 'Master card deleted.',
    summary: 'Delete a master card',
    description: 'Deletes a master card; its copies stay, unless `delete_from_projects` is set.',
  })
    .meta({ isDestructive: true, events: ['master_card.deleted', 'template.removed'] })
    .input(MasterCardDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteMasterCard(ctx, input)),

  restore: restoring(superadminProcedure, '/services/operations/v1/admin/master-cards/restore', 'master card', {
    events: ['master_card.restored', 'template.applied'],
    with: 'the copies',
  })
    .meta({ reasons: ['parent_deleted', 'already_exists'] })
    .input(restoreOf(1))
    .output(restoredOf('card', Card))
    .mutation(({ ctx, input }) => restoreMasterCard(ctx, input)),

  update: rest(superadminProcedure, '/services/operations/v1/admin/master-cards/update', {
    message: 'Master card updated.',
    summary: 'Update a master card',
    description:
      'Changes the sent fields, but not the copies in projects: push it to change these. Only a new `unique_identifier` reaches the copies at once.',
  })
    .meta({
      prepare: sanitiseDescription,
      events: ['master_card.updated', 'template.applied'],
      reasons: ['already_exists'],
    })
    .input(MasterCardUpdate)
    .output(z.object({ card: Card, version: rowVersion }))
    .mutation(({ ctx, input }) => updateMasterCard(ctx, input)),

  reorder: rest(superadminProcedure, '/services/operations/v1/admin/master-cards/reorder', {
    message: 'Master cards reordered.',
    summary: 'Reorder master cards',
    description:
      'Moves master cards of one board to positions in a group, atomically; other cards whose position is taken move behind them.',
  })
    .meta({ events: ['master_card.reordered'], reasons: ['several_parents'] })
    .input(MasterCardMove)
    .output(z.void())
    .mutation(({ ctx, input }) => reorderMasterCards(ctx, input)),

  previewPush: rest(superadminProcedure, '/services/operations/v1/admin/master-cards/preview-push', {
    message: 'What a push would do.',
    summary: 'Preview the push of a master card',
    description: 'What a push of the card would do to each project; nothing changes.',
  })
    .input(PushPreview)
    .output(OutcomePage)
    .query(({ ctx, input }) => previewPush(ctx, input)),
});
