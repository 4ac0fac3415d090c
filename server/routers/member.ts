import { z } from 'zod';
import { Member, MemberChoice, MemberList, MemberPage, MemberSet } from '../../shared/member.ts';
import { listMembers, removeMember, setMember } from '../domain/member.ts';
import { router, superadminProcedure } from '../trpc.ts';

export const memberRouter = router({
  set: superadminProcedure
    .meta({ command: 'Add a user to a project, or change their role.' })
    .input(MemberSet)
    .output(z.object({ member: Member }))
    .mutation(({ ctx, input }) => setMember(ctx, input)),

  remove: superadminProcedure
    .meta({ command: 'Remove a user from a project.' })
    .input(MemberChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => removeMember(ctx, input)),

  list: superadminProcedure
    .meta({ command: 'List the members of a project.' })
    .input(MemberList)
    .output(MemberPage)
    .query(({ ctx, input }) => listMembers(ctx, input)),
});
