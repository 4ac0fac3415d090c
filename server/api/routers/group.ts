import { z } from 'zod';
import { rowVersion, sentAsText } from '../../../shared/fields.ts';
import {
  Group,
  GroupConfigure,
  GroupCreate,
  GroupDelete,
  GroupList,
  GroupPage,
  GroupReorder,
  GroupUpdate,
} from '../../../shared/group.ts';
import { restoredOf, restoreOf } from '../../../shared/trash.ts';
import {
  configureGroup,
  createGroup,
  deleteGroup,
  listGroups,
  reorderGroups,
  restoreGroup,
  updateGroup,
} from '../../domain/board/group.ts';
import { rest, specified } from '../restOperation.ts';
import { restoring } from '../restoreOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';

export const groupRouter = router({
  create: rest(memberProcedure, '/services/operations/v1/operations/groups/create', {
    status: 201,
    message: 'Group created.',
    summary: 'Create a group',
    description: 'Creates a group on a board, after the others unless a position is sent.',
  })
    .meta({ events: ['group.created'], tool: true, reasons: ['place_full'] })
    .input(GroupCreate)
    .output(z.object({ group: Group, version: rowVersion }))
    .mutation(({ ctx, input }) => createGroup(ctx, input)),

  list: rest(viewerProcedure, '/services/operations/v1/operations/groups/list', {
    message: 'Groups of the board.',
    summary: 'List groups',
    description: 'The groups of a board in order, page by page: for a board that is too large for `boards.get`.',
  })
    .input(GroupList)
    .output(GroupPage)
    .query(({ ctx, input }) => listGroups(ctx, input)),

  update: specified(memberProcedure, '/services/operations/v1/operations/groups/update', {
    message: 'Group updated.',
    summary: 'Update a group',
    description: 'Changes the sent fields.',
    bodies: { 403: 'full' },
  })
    .meta({ events: ['group.updated', 'group.reordered'] })
    .input(GroupUpdate)
    .output(z.object({ group: sentAsText(Group, 'The JSON text of the group.'), version: rowVersion }))
    .mutation(({ ctx, input }) => updateGroup(ctx, input)),

  configure: rest(memberProcedure, '/services/operations/v1/operations/groups/configure', {
    message: 'Group configured.',
    summary: 'Configure a group',
    description: 'Switches a group on or off; an inactive group is still listed and works as before.',
  })
    .meta({ events: ['group.updated'] })
    .input(GroupConfigure)
    .output(z.object({ group: Group, version: rowVersion }))
    .mutation(({ ctx, input }) => configureGroup(ctx, input)),

  reorder: specified(memberProcedure, '/services/operations/v1/operations/groups/reorder', {
    message: 'Groups reordered.',
    summary: 'Reorder groups',
    description:
      'Sets the positions of groups of one board atomically; other groups whose position is taken move behind them.',
  })
    .meta({ events: ['group.reordered'], reasons: ['several_parents'] })
    .input(GroupReorder)
    .output(z.void())
    .mutation(({ ctx, input }) => reorderGroups(ctx, input)),

  delete: rest(memberProcedure, '/services/operations/v1/operations/groups/delete', {
    message: 'Group deleted.',
    summary: 'Delete a group',
    description: 'Deletes a group with its cards.',
  })
    .meta({ isDestructive: true, events: ['group.deleted'] })
    .input(GroupDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteGroup(ctx, input)),

  restore: restoring(memberProcedure, '/services/operations/v1/operations/groups/restore', 'group', {
    events: ['group.restored'],
    with: 'the cards',
  })
    .meta({ reasons: ['parent_deleted', 'place_full', 'already_exists'] })
    .input(restoreOf(7))
    .output(restoredOf('group', Group))
    .mutation(({ ctx, input }) => restoreGroup(ctx, input)),
});
