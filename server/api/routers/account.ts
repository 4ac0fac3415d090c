import { z } from 'zod';
import {
  Account,
  DefaultProject,
  PasswordChange,
  PasswordChanged,
  ProofGiven,
  RecoveryCodes,
  SecondFactorConfirm,
  SecondFactorOffer,
  SecondFactorProof,
  SecondFactorStart,
  SignedOutEverywhere,
  SignOutEverywhere,
} from '../../../shared/account.ts';
import { InvitationChoice, OwnInvitationPage } from '../../../shared/invitation.ts';
import { Member } from '../../../shared/member.ts';
import { Page } from '../../../shared/paging.ts';
import { PASSWORD_REASONS, PROOF_REASONS } from '../../../shared/reasons.ts';
import {
  changePassword,
  confirmSecondFactor,
  dropSecondFactor,
  renewRecoveryCodes,
  setDefaultProject,
  signOut,
  signOutEverywhere,
  startSecondFactor,
  whoAmI,
} from '../../domain/account/account.ts';
import { acceptInvitation, declineInvitation, listOwnInvitations } from '../../domain/account/invitation.ts';
import { giveProof } from '../../domain/account/proof.ts';
import { rest } from '../restOperation.ts';
import { router, signedInProcedure } from '../trpc.ts';

export const accountRouter = router({
  whoAmI: rest(signedInProcedure, '/v1/account/who-am-i', {
    message: 'Your account.',
    summary: 'Get your account',
    description: 'The account of the caller, with the number of recovery codes left.',
    namesRow: false,
  })
    .meta({ onPrimary: true })
    .output(z.object({ account: Account }))
    .query(({ ctx }) => whoAmI(ctx)),

  signOut: rest(signedInProcedure, '/v1/account/sign-out', {
    message: 'Signed out.',
    summary: 'Sign out',
    description: 'Ends the session of the token.',
    namesRow: false,
  })
    .meta({ isDestructive: true, events: ['session.ended'] })
    .output(z.void())
    .mutation(({ ctx }) => signOut(ctx)),

  signOutEverywhere: rest(signedInProcedure, '/v1/account/sign-out-everywhere', {
    message: 'Signed out everywhere.',
    summary: 'Sign out everywhere',
    description:
      'Ends all sessions of the caller; no device is remembered any more. API keys stay valid unless `revoke_keys` is sent; `keys_left` counts them.',
    namesRow: false,
  })
    .meta({ isDestructive: true, events: ['sessions.ended', 'key.revoked', 'webhook.disabled'] })
    .input(SignOutEverywhere)
    .output(SignedOutEverywhere)
    .mutation(({ ctx, input }) => signOutEverywhere(ctx, input)),

  setDefaultProject: rest(signedInProcedure, '/v1/account/set-default-project', {
    message: 'Default project set.',
    summary: 'Set your default project',
    description: 'Sets the project of calls that name no project and no row.',
  })
    .meta({ events: ['user.updated'], reasons: ['other_project'] })
    .input(DefaultProject)
    .output(z.void())
    .mutation(({ ctx, input }) => setDefaultProject(ctx, input)),

  listInvitations: rest(signedInProcedure, '/v1/account/list-invitations', {
    message: 'Your invitations.',
    summary: 'List your invitations',
    description: 'The invitations to projects that the caller can accept or decline, page by page.',
    namesRow: false,
  })
    .meta({ onPrimary: true })
    .input(Page)
    .output(OwnInvitationPage)
    .query(({ ctx, input }) => listOwnInvitations(ctx, input)),

  acceptInvitation: rest(signedInProcedure, '/v1/account/accept-invitation', {
    message: 'Invitation accepted.',
    summary: 'Accept an invitation',
    description: 'Makes the caller a member of the project. Calls that name no project go where they went before.',
  })
    .meta({ events: ['member.added', 'invitation.withdrawn'], reasons: ['other_user'] })
    .input(InvitationChoice)
    .output(z.object({ member: Member }))
    .mutation(({ ctx, input }) => acceptInvitation(ctx, input)),

  declineInvitation: rest(signedInProcedure, '/v1/account/decline-invitation', {
    message: 'Invitation declined.',
    summary: 'Decline an invitation',
    description: 'Removes an invitation of the caller.',
  })
    .meta({ isDestructive: true, events: ['invitation.declined'], reasons: ['other_user'] })
    .input(InvitationChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => declineInvitation(ctx, input)),

  prove: rest(signedInProcedure, '/v1/account/prove', {
    message: 'Proof accepted.',
    summary: 'Prove that it is you',
    description:
      'Takes the password, and a code if a second factor is enabled. For ten minutes, the session may then do what needs fresh proof: create secrets and rights, and have data sent elsewhere. Signing in with both counts as proof, too. Wrong ones count as failed sign-ins.',
    namesRow: false,
  })
    .meta({ idempotency: 'never', events: ['session.proven'], reasons: [...PROOF_REASONS, 'proof_required'] })
    .input(ProofGiven)
    .output(z.void())
    .mutation(({ ctx, input }) => giveProof(ctx, input)),

  changePassword: rest(signedInProcedure, '/v1/account/change-password', {
    message: 'Password changed.',
    summary: 'Change your password',
    description:
      'Changes the password, ends all sessions, and returns the token of a new one. If a second factor is enabled, a code must have been given within the last ten minutes (`account.prove`). API keys stay valid unless `revoke_keys` is sent; `keys_left` counts them.',
    namesRow: false,
  })
    .meta({
      isDestructive: true,
      idempotency: 'secret',
      events: ['user.password_changed', 'key.revoked', 'webhook.disabled'],
      reasons: [...PASSWORD_REASONS, 'password_weak', 'proof_required'],
    })
    .input(PasswordChange)
    .output(PasswordChanged)
    .mutation(({ ctx, input }) => changePassword(ctx, input)),

  startSecondFactor: rest(signedInProcedure, '/v1/account/start-second-factor', {
    message: 'Second factor offered.',
    summary: 'Start a second factor',
    description: 'Returns a secret for an authenticator app. It is enabled once a code confirms it.',
    namesRow: false,
  })
    .meta({
      idempotency: 'secret',
      events: ['second_factor.started'],
      reasons: [...PASSWORD_REASONS, 'second_factor_enabled'],
    })
    .input(SecondFactorStart)
    .output(SecondFactorOffer)
    .mutation(({ ctx, input }) => startSecondFactor(ctx, input)),

  confirmSecondFactor: rest(signedInProcedure, '/v1/account/confirm-second-factor', {
    message: 'Second factor enabled.',
    summary: 'Confirm the second factor',
    description: 'Enables the second factor with a code of the app, and returns the recovery codes once.',
    namesRow: false,
  })
    .meta({
      idempotency: 'secret',
      events: ['second_factor.enabled'],
      reasons: ['second_factor_not_started', 'code_wrong', 'codes_blocked', 'too_many_failures'],
    })
    .input(SecondFactorConfirm)
    .output(RecoveryCodes)
    .mutation(({ ctx, input }) => confirmSecondFactor(ctx, input)),

  dropSecondFactor: rest(signedInProcedure, '/v1/account/drop-second-factor', {
    message: 'Second factor disabled.',
    summary: 'Drop the second factor',
    description: 'Disables the second factor: the password alone signs in from now on.',
    namesRow: false,
  })
    .meta({
      isDestructive: true,
      idempotency: 'inSteps',
      events: ['second_factor.dropped'],
      reasons: [...PROOF_REASONS, 'second_factor_missing'],
    })
    .input(SecondFactorProof)
    .output(z.void())
    .mutation(({ ctx, input }) => dropSecondFactor(ctx, input)),

  renewRecoveryCodes: rest(signedInProcedure, '/v1/account/renew-recovery-codes', {
    message: 'Recovery codes created.',
    summary: 'Renew recovery codes',
    description: 'Returns new recovery codes once; the old ones are invalid.',
    namesRow: false,
  })
    .meta({
      isDestructive: true,
      idempotency: 'secret',
      events: ['recovery_codes.renewed'],
      reasons: [...PROOF_REASONS, 'second_factor_missing'],
    })
    .input(SecondFactorProof)
    .output(RecoveryCodes)
    .mutation(({ ctx, input }) => renewRecoveryCodes(ctx, input)),
});
