import { z } from 'zod';
import {
  Invitation,
  InvitationChoice,
  InvitationList,
  InvitationPage,
  MemberInvite,
} from '../../../shared/invitation.ts';
import {
  Member,
  MemberAdd,
  MemberChoice,
  MemberLeave,
  MemberList,
  MemberPage,
  MemberSet,
} from '../../../shared/member.ts';
import { pausedWebhooks } from '../../../shared/webhook.ts';
import { inviteMember, listInvitations, withdrawInvitation } from '../../domain/account/invitation.ts';
import { addMember, leaveProject, listMembers, removeMember, setMember } from '../../domain/account/member.ts';
import { rest } from '../restOperation.ts';
import {
  ownerOrSuperadminProcedure,
  router,
  signedInProcedure,
  superadminProcedure,
  viewerProcedure,
} from '../trpc.ts';

export const memberRouter = router({
  invite: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/members/invite', {
    status: 201,
    message: 'Invitation created.',
    summary: 'Invite a member',
    description:
      'Invites an e-mail address to a project. It gets a mail with a link, if the service sends mails; its user becomes a member by accepting, and an address without an account signs up. A second invitation changes the role. A key gives the role owner only with the scope `admin`, too.',
  })
    .meta({
      proof: 'always',
      events: ['invitation.created'],
      reasons: ['already_a_member', 'place_full', 'too_many_mails'],
    })
    .input(MemberInvite)
    .output(z.object({ invitation: Invitation }))
    .mutation(({ ctx, input }) => inviteMember(ctx, input)),

  listInvitations: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/members/list-invitations', {
    message: 'Invitations to the project.',
    summary: 'List invitations to a project',
    description: 'The invitations to a project that were neither accepted nor declined, page by page.',
  })
    .input(InvitationList)
    .output(InvitationPage)
    .query(({ ctx, input }) => listInvitations(ctx, input)),

  withdrawInvitation: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/members/withdraw-invitation', {
    message: 'Invitation withdrawn.',
    summary: 'Withdraw an invitation',
    description: 'Removes an invitation: it can no longer be accepted.',
  })
    .meta({ isDestructive: true, events: ['invitation.withdrawn'] })
    .input(InvitationChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => withdrawInvitation(ctx, input)),

  add: rest(superadminProcedure, '/services/platforms/v1/members/add', {
    status: 201,
    message: 'Member added.',
    summary: 'Add a member',
    description: 'Adds a registered user to a project, by e-mail address, without asking them. Owners invite instead.',
  })
    .meta({
      proof: 'always',
      events: ['member.added'],
      reasons: ['other_project', 'not_registered', 'already_a_member'],
    })
    .input(MemberAdd)
    .output(z.object({ member: Member }))
    .mutation(({ ctx, input }) => addMember(ctx, input)),

  set: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/members/set', {
    message: 'Member set.',
    summary: 'Set the role of a member',
    description:
      'Changes the role of a member; superadmins also add users. The last owner stays one. A key gives the role owner only with the scope `admin`, too.',
  })
    .meta({
      proof: { for: 'a higher role, or a new member' },
      events: ['member.updated', 'member.added', 'webhook.disabled'],
      reasons: ['not_a_member', 'unknown_reference', 'last_owner'],
    })
    .input(MemberSet)
    .output(z.object({ member: Member, paused_webhooks: pausedWebhooks }))
    .mutation(({ ctx, input }) => setMember(ctx, input)),

  remove: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/members/remove', {
    message: 'Member removed.',
    summary: 'Remove a member',
    description:
      'Removes a user from a project, unless they are its last owner; their cards there lose their owner, and their webhooks are switched off.',
  })
    .meta({
      isDestructive: true,
      events: ['member.removed', 'webhook.disabled'],
      reasons: ['not_a_member', 'last_owner'],
    })
    .input(MemberChoice)
    .output(z.object({ paused_webhooks: pausedWebhooks }))
    .mutation(({ ctx, input }) => removeMember(ctx, input)),

  leave: rest(signedInProcedure, '/services/platforms/v1/members/leave', {
    message: 'You left the project.',
    summary: 'Leave a project',
    description:
      "Ends the caller's membership, unless they are the last owner; their cards in the project lose their owner, and their webhooks are switched off.",
  })
    .meta({
      isDestructive: true,
      events: ['member.removed', 'webhook.disabled'],
      reasons: ['not_a_member', 'other_project', 'last_owner'],
    })
    .input(MemberLeave)
    .output(z.void())
    .mutation(({ ctx, input }) => leaveProject(ctx, input)),

  list: rest(viewerProcedure, '/services/platforms/v1/members/list', {
    message: 'Members of the project.',
    summary: 'List members',
    description: 'The members of a project, or those that a text finds, page by page.',
  })
    .meta({ tool: true })
    .input(MemberList)
    .output(MemberPage)
    .query(({ ctx, input }) => listMembers(ctx, input)),
});
