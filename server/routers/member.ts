import { z } from 'zod';
import { Member, MemberAdd, MemberChoice, MemberList, MemberPage, MemberSet } from '../../shared/member.ts';
import { addMember, listMembers, removeMember, setMember } from '../domain/member.ts';
import { rest } from '../restOperation.ts';
import { ownerOrSuperadminProcedure, router, viewerProcedure } from '../trpc.ts';

export const memberRouter = router({
  add: ownerOrSuperadminProcedure
    .meta(
      rest('/services/platforms/v1/members/add', {
        status: 201,
        message: 'Member added.',
        summary: 'Add a member',
        description: 'Adds a registered user to a project, by e-mail address.',
      }),
    )
    .input(MemberAdd)
    .output(z.object({ member: Member }))
    .mutation(({ ctx, input }) => addMember(ctx, input)),

  set: ownerOrSuperadminProcedure
    .meta(
      rest('/services/platforms/v1/members/set', {
        message: 'Member set.',
        summary: 'Set the role of a member',
        description: 'Changes the role of a member; superadmins also add users. The last owner stays one.',
      }),
    )
    .input(MemberSet)
    .output(z.object({ member: Member }))
    .mutation(({ ctx, input }) => setMember(ctx, input)),

  remove: ownerOrSuperadminProcedure
    .meta(
      rest('/services/platforms/v1/members/remove', {
        message: 'Member removed.',
        summary: 'Remove a member',
        description:
          'Removes a user from a project, unless they are its last owner; their cards there lose their owner.',
      }),
    )
    .input(MemberChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => removeMember(ctx, input)),

  list: viewerProcedure
    .meta(
      rest('/services/platforms/v1/members/list', {
        message: 'Members of the project.',
        summary: 'List members',
        description: 'The members of a project, page by page.',
      }),
    )
    .input(MemberList)
    .output(MemberPage)
    .query(({ ctx, input }) => listMembers(ctx, input)),
});
