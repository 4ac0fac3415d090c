import { z } from 'zod';
import { rowVersion, sentAsText } from '../../../shared/fields.ts';
import { Group } from '../../../shared/group.ts';
import {
  MasterGroup,
  MasterGroupConfigure,
  MasterGroupCreate,
  MasterGroupDelete,
  MasterGroupList,
  MasterGroupPush,
  MasterGroupReorder,
  MasterGroupUpdate,
  projectsUpdated,
} from '../../../shared/master.ts';
import { GroupPushPreview, OutcomePage } from '../../../shared/templateRun.ts';
import { restoredOf, restoreOf } from '../../../shared/trash.ts';
import {
  configureMasterGroup,
  createMasterGroup,
  deleteMasterGroup,
  listMasterGroups,
  previewGroupPush,
  pushMasterGroup,
  reorderMasterGroups,
  restoreMasterGroup,
  updateMasterGroup,
} from '../../domain/template/masterGroup.ts';
import { RUN_EVENTS } from '../../domain/template/template.ts';
import { rest, specified } from '../restOperation.ts';
import { restoring } from '../restoreOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

export const masterGroupRouter = router({
  create: specified(superadminProcedure, '/services/operations/v1/admin/master-groups/create', {
    status: 201,
    message: 'Master group created.',
    summary: 'Create a master group',
    description: 'Creates a group on a master board, after the others.',
  })
    .meta({ events: ['master_group.created'], reasons: ['place_full'] })
    .input(MasterGroupCreate)
    .output(z.object({ group: Group, version: rowVersion }))
    .mutation(({ ctx, input }) => createMasterGroup(ctx, input)),

  update: specified(superadminProcedure, '/services/operations/v1/admin/master-groups/update', {
    message: 'Master group updated.',
    summary: 'Update a master group',
    description:
      'Changes the sent fields, but not the copies in projects: sync its board, or push it, to change these.',
  })
    .meta({ events: ['master_group.updated'] })
    .input(MasterGroupUpdate)
    .output(z.object({ group: sentAsText(Group, 'The JSON text of the master group.'), version: rowVersion }))
    .mutation(({ ctx, input }) => updateMasterGroup(ctx, input)),

  reorder: specified(superadminProcedure, '/services/operations/v1/admin/master-groups/reorder', {
    message: 'Master groups reordered.',
    summary: 'Reorder master groups',
    description:
      'Sets the positions of groups of a master board atomically; other groups whose position is taken move behind them. A sync of the board brings the order to the copies.',
    errors: [400, 401, 403, 422, 429, 500],
  })
    .meta({ events: ['master_group.reordered'], reasons: ['unknown_reference'] })
    .input(MasterGroupReorder)
    .output(z.void())
    .mutation(({ ctx, input }) => reorderMasterGroups(ctx, input)),

  delete: specified(superadminProcedure, '/services/operations/v1/admin/master-groups/delete', {
    message: 'Master group deleted.',
    summary: 'Delete a master group',
    description: 'Deletes a master group with its cards; the copies in projects stay.',
  })
    .meta({ isDestructive: true, events: ['master_group.deleted'] })
    .input(MasterGroupDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteMasterGroup(ctx, input)),

  restore: restoring(superadminProcedure, '/services/operations/v1/admin/master-groups/restore', 'master group', {
    events: ['master_group.restored'],
    with: 'the cards',
  })
    .meta({ reasons: ['parent_deleted', 'place_full', 'already_exists'] })
    .input(restoreOf(1))
    .output(restoredOf('group', Group))
    .mutation(({ ctx, input }) => restoreMasterGroup(ctx, input)),

  list: rest(superadminProcedure, '/services/operations/v1/admin/master-groups/list', {
    message: 'Groups of the master board.',
    summary: 'List master groups',
    description: 'The groups of a master board in order, with the numbers of their cards.',
  })
    .meta({ reasons: ['answer_too_large'] })
    .input(MasterGroupList)
    .output(z.object({ groups: z.array(MasterGroup).meta({ description: 'The groups in order.' }) }))
    .query(({ ctx, input }) => listMasterGroups(ctx, input)),

  configure: rest(superadminProcedure, '/services/operations/v1/admin/master-groups/configure', {
    message: 'Master group configured.',
    summary: 'Configure a master group',
    description:
      'Changes the sent fields, but not the copies in projects: sync its board, or push it, to change these.',
  })
    .meta({ events: ['master_group.updated'] })
    .input(MasterGroupConfigure)
    .output(z.object({ group: Group, version: rowVersion }))
    .mutation(({ ctx, input }) => configureMasterGroup(ctx, input)),

  push: rest(superadminProcedure, '/services/operations/v1/admin/master-groups/push', {
    message: 'Master group pushed.',
    summary: 'Push a master group',
    description:
      'Adds missing copies of the group, and of its board, to every active project with access, and brings what changed on the group to the copies. Fields that a project changed itself stay, and so do deleted copies; no cards are added.',
  })
    .meta({ isDestructive: true, idempotency: 'inSteps', events: RUN_EVENTS, reasons: ['service_stopping'] })
    .input(MasterGroupPush)
    .output(z.object({ projects_updated: projectsUpdated }))
    .mutation(({ ctx, input }) => pushMasterGroup(ctx, input)),

  previewPush: rest(superadminProcedure, '/services/operations/v1/admin/master-groups/preview-push', {
    message: 'What a push would do.',
    summary: 'Preview a push of a master group',
    description: 'What a push of the group would do to each project; nothing changes.',
  })
    .input(GroupPushPreview)
    .output(OutcomePage)
    .query(({ ctx, input }) => previewGroupPush(ctx, input)),
});
