import { z } from 'zod';
import { sentAsText } from '../../../shared/fields.ts';
import { Group, GroupConfigure, GroupCreate, GroupDelete, GroupReorder, GroupUpdate } from '../../../shared/group.ts';
import { configureGroup, createGroup, deleteGroup, reorderGroups, updateGroup } from '../../domain/board/group.ts';
import { rest, specified } from '../restOperation.ts';
import { memberProcedure, router } from '../trpc.ts';

export const groupRouter = router({
  create: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/groups/create', {
        status: 201,
        message: 'Group created.',
        summary: 'Create a group',
        description: 'Creates a group on a board, after the others unless a position is sent.',
      }),
    )
    .input(GroupCreate)
    .output(z.object({ group: Group }))
    .mutation(({ ctx, input }) => createGroup(ctx, input)),

  update: memberProcedure
    .meta(
      specified('/services/operations/v1/operations/groups/update', {
        message: 'Group updated.',
        summary: 'Update a group',
        description: 'Changes the sent fields.',
        bodies: { 403: 'full' },
      }),
    )
    .input(GroupUpdate)
    .output(z.object({ group: sentAsText(Group, 'The JSON text of the group.') }))
    .mutation(({ ctx, input }) => updateGroup(ctx, input)),

  configure: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/groups/configure', {
        message: 'Group configured.',
        summary: 'Configure a group',
        description: 'Switches a group on or off; an inactive group is still listed and works as before.',
      }),
    )
    .input(GroupConfigure)
    .output(z.object({ group: Group }))
    .mutation(({ ctx, input }) => configureGroup(ctx, input)),

  reorder: memberProcedure
    .meta(
      specified('/services/operations/v1/operations/groups/reorder', {
        message: 'Groups reordered.',
        summary: 'Reorder groups',
        description:
          'Sets the positions of groups of one board atomically; other groups whose position is taken move behind them.',
      }),
    )
    .input(GroupReorder)
    .output(z.void())
    .mutation(({ ctx, input }) => reorderGroups(ctx, input)),

  delete: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/groups/delete', {
        message: 'Group deleted.',
        summary: 'Delete a group',
        description: 'Deletes a group with its cards.',
      }),
    )
    .input(GroupDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteGroup(ctx, input)),
});
