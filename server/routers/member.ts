import { z } from 'zod';
import { Member, MemberAdd, MemberChoice, MemberList, MemberPage, MemberSet } from '../../shared/member.ts';
import { addMember, listMembers, removeMember, setMember } from '../domain/member.ts';
import { ownerOrSuperadminProcedure, router, viewerProcedure } from '../trpc.ts';

export const memberRouter = router({
  add: ownerOrSuperadminProcedure
    .meta({ command: 'Add a registered user to a project, by e-mail address.' })
    .input(MemberAdd)
    .output(z.object({ member: Member }))
    .mutation(({ ctx, input }) => addMember(ctx, input)),

  set: ownerOrSuperadminProcedure
    .meta({ command: 'Change the role of a member; superadmins also add users.' })
    .input(MemberSet)
    .output(z.object({ member: Member }))
    .mutation(({ ctx, input }) => setMember(ctx, input)),

  remove: ownerOrSuperadminProcedure
    .meta({ command: 'Remove a user from a project.' })
    .input(MemberChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => removeMember(ctx, input)),

  list: viewerProcedure
    .meta({ command: 'List the members of a project.' })
    .input(MemberList)
    .output(MemberPage)
    .query(({ ctx, input }) => listMembers(ctx, input)),
});
