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
import { Erased, ExportGet, ExportPart, ExportStarted } from '../../../shared/erasure.ts';
import { InvitationAccept, InvitationChoice, OwnInvitationPage } from '../../../shared/invitation.ts';
import { Member } from '../../../shared/member.ts';
import { Page } from '../../../shared/paging.ts';
import { PASSWORD_REASONS, PROOF_REASONS } from '../../../shared/reasons.ts';
import {
  AddressChange,
  AddressConfirm,
  AddressConfirmed,
  InvitationLink,
  PasswordReset,
  PasswordResetDone,
  PasswordResetRequest,
  ShownInvitation,
  SignedUp,
  SignUp,
} from '../../../shared/recovery.ts';
import { IdentityChoice, IdentityList, IdentityPage } from '../../../shared/sso.ts';
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
import { changeAddress, confirmAddress, requestConfirmation } from '../../domain/account/address.ts';
import { eraseAccount } from '../../domain/account/erasure.ts';
import { getExport, startExport } from '../../domain/account/export.ts';
import { listIdentities, unlinkIdentity } from '../../domain/account/identity.ts';
import { acceptInvitation, declineInvitation, listOwnInvitations } from '../../domain/account/invitation.ts';
import { giveProof } from '../../domain/account/proof.ts';
import { requestPasswordReset, resetPassword } from '../../domain/account/recovery.ts';
import { showInvitation, signUp } from '../../domain/account/signUp.ts';
import { rest } from '../restOperation.ts';
import { anyoneProcedure, router, signedInProcedure } from '../trpc.ts';

export const WHAT_ERASURE_DOES =
  'Name, e-mail address, sessions, API keys, memberships and whatever else the service has written about the person goes. The id, cards and comments stay. Not for the last superadmin with a password, or the last owner of a project.';

export const ERASURE = {
  isDestructive: true,
  proof: 'always',
  level: 3,
  idempotency: 'inSteps',
  events: ['user.erased', 'member.removed', 'key.revoked', 'invitation.withdrawn', 'webhook.disabled'],
  reasons: ['last_superadmin', 'last_owner'],
} as const;

export const accountRouter = router({
  whoAmI: rest(signedInProcedure, '/v1/account/who-am-i', {
    message: 'Your account.',
    summary: 'Get your account',
    description: 'The account of the caller, with the number of recovery codes left.',
  })
    .meta({ onPrimary: true })
    .output(z.object({ account: Account }))
    .query(({ ctx }) => whoAmI(ctx)),

  signOut: rest(signedInProcedure, '/v1/account/sign-out', {
    message: 'Signed out.',
    summary: 'Sign out',
    description: 'Ends the session of the token.',
  })
    .meta({ isDestructive: true, events: ['session.ended'] })
    .output(z.void())
    .mutation(({ ctx }) => signOut(ctx)),

  signOutEverywhere: rest(signedInProcedure, '/v1/account/sign-out-everywhere', {
    message: 'Signed out everywhere.',
    summary: 'Sign out everywhere',
    description:
      'Ends all sessions of the caller; no device is remembered any more. API keys stay valid unless `revoke_keys` is sent; `keys_left` counts them. Identities that were linked within the last seven days are unlinked.',
  })
    .meta({ isDestructive: true, events: ['sessions.ended', 'identity.unlinked', 'key.revoked', 'webhook.disabled'] })
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
  })
    .meta({ onPrimary: true, reasons: ['address_unconfirmed'] })
    .input(Page)
    .output(OwnInvitationPage)
    .query(({ ctx, input }) => listOwnInvitations(ctx, input)),

  acceptInvitation: rest(signedInProcedure, '/v1/account/accept-invitation', {
    message: 'Invitation accepted.',
    summary: 'Accept an invitation',
    description:
      'Makes the caller a member of the project. Calls that name no project go where they went before. The address of the account must be confirmed, or is with the `secret` of the link.',
  })
    .meta({
      events: ['member.added', 'invitation.withdrawn', 'user.updated'],
      reasons: ['other_user', 'address_unconfirmed', 'link_invalid', 'too_many_failures'],
    })
    .input(InvitationAccept)
    .output(z.object({ member: Member }))
    .mutation(({ ctx, input }) => acceptInvitation(ctx, input)),

  declineInvitation: rest(signedInProcedure, '/v1/account/decline-invitation', {
    message: 'Invitation declined.',
    summary: 'Decline an invitation',
    description: 'Removes an invitation of the caller.',
  })
    .meta({ isDestructive: true, events: ['invitation.declined'], reasons: ['other_user', 'address_unconfirmed'] })
    .input(InvitationChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => declineInvitation(ctx, input)),

  prove: rest(signedInProcedure, '/v1/account/prove', {
    message: 'Proof accepted.',
    summary: 'Prove that it is you',
    description:
      'Takes the password, and a code if a second factor is enabled. For ten minutes, the session may then do what needs fresh proof: create secrets and rights, and have data sent elsewhere. Signing in with both counts as proof, too. Wrong ones count as failed sign-ins.',
  })
    .meta({ idempotency: 'never', events: ['session.proven'], reasons: [...PROOF_REASONS, 'proof_required'] })
    .input(ProofGiven)
    .output(z.void())
    .mutation(({ ctx, input }) => giveProof(ctx, input)),

  listIdentities: rest(signedInProcedure, '/v1/account/list-identities', {
    message: 'Your identities.',
    summary: 'List your identities',
    description: 'The accounts at identity providers that are linked to yours, page by page.',
  })
    .meta({ onPrimary: true })
    .input(IdentityList)
    .output(IdentityPage)
    .query(({ ctx, input }) => listIdentities(ctx, input)),

  unlinkIdentity: rest(signedInProcedure, '/v1/account/unlink-identity', {
    message: 'Identity unlinked.',
    summary: 'Unlink an identity',
    description:
      'Removes the link to an account at an identity provider. Sessions that it signed in to end, also this one.',
  })
    .meta({
      isDestructive: true,
      level: 3,
      proof: 'always',
      events: ['identity.unlinked'],
      reasons: ['last_way_in'],
    })
    .input(IdentityChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => unlinkIdentity(ctx, input)),

  changePassword: rest(signedInProcedure, '/v1/account/change-password', {
    message: 'Password changed.',
    summary: 'Change your password',
    description:
      'Changes the password, ends all sessions, and returns the token of a new one. If a second factor is enabled, a code must have been given within the last ten minutes (`account.prove`). API keys stay valid unless `revoke_keys` is sent; `keys_left` counts them. Identities that were linked within the last seven days are unlinked.',
  })
    .meta({
      isDestructive: true,
      idempotency: 'secret',
      events: ['user.password_changed', 'identity.unlinked', 'key.revoked', 'webhook.disabled'],
      reasons: [...PASSWORD_REASONS, 'password_weak', 'proof_required'],
    })
    .input(PasswordChange)
    .output(PasswordChanged)
    .mutation(({ ctx, input }) => changePassword(ctx, input)),

  startSecondFactor: rest(signedInProcedure, '/v1/account/start-second-factor', {
    message: 'Second factor offered.',
    summary: 'Start a second factor',
    description: 'Returns a secret for an authenticator app. It is enabled once a code confirms it.',
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

  requestPasswordReset: rest(anyoneProcedure, '/v1/account/request-password-reset', {
    message: 'If an account has this address, a mail is on its way.',
    summary: 'Ask for a password reset',
    description:
      'Sends a mail with a link to the address, if an account with a password has it. The answer is the same for every address. While an earlier mail is a few minutes old, no other one is sent: its link works. After 100 requests of one network in an hour, it answers 429.',
  })
    .meta({ idempotency: 'never', events: [], reasons: ['mail_not_configured', 'too_many_mails'] })
    .input(PasswordResetRequest)
    .output(z.void())
    .mutation(({ ctx, input }) => requestPasswordReset(ctx, input)),

  resetPassword: rest(anyoneProcedure, '/v1/account/reset-password', {
    message: 'Password changed. Sign in with the new one.',
    summary: 'Reset a password',
    description:
      'Sets a new password with the link of a mail, which works once and for 30 minutes. Ends all sessions; no device is remembered any more. The second factor stays. API keys stay valid: `keys_left` counts them. Identities that were linked within the last seven days are unlinked.',
  })
    .meta({
      isDestructive: true,
      idempotency: 'never',
      events: ['user.password_changed', 'identity.unlinked'],
      reasons: ['link_invalid', 'password_weak', 'too_many_failures'],
    })
    .input(PasswordReset)
    .output(PasswordResetDone)
    .mutation(({ ctx, input }) => resetPassword(ctx, input)),

  changeAddress: rest(signedInProcedure, '/v1/account/change-address', {
    message: 'A mail with a link is on its way to the new address.',
    summary: 'Change your e-mail address',
    description:
      'Sends a link to the new address. The address changes when you confirm it there (`account.confirmAddress`), and the old one is told.',
  })
    .meta({ proof: 'always', events: [], reasons: ['mail_not_configured', 'too_many_mails', 'no_password'] })
    .input(AddressChange)
    .output(z.void())
    .mutation(({ ctx, input }) => changeAddress(ctx, input)),

  requestConfirmation: rest(signedInProcedure, '/v1/account/request-confirmation', {
    message: 'Unless your address is confirmed already, a mail with a link is on its way to it.',
    summary: 'Ask for a link that confirms your address',
    description: 'Sends a link to the address of the account, if it is not confirmed yet.',
  })
    .meta({ events: [], reasons: ['mail_not_configured', 'too_many_mails', 'no_password'] })
    .output(z.void())
    .mutation(({ ctx }) => requestConfirmation(ctx)),

  confirmAddress: rest(signedInProcedure, '/v1/account/confirm-address', {
    message: 'Address confirmed.',
    summary: 'Confirm an e-mail address',
    description:
      'Makes the address that a link was sent to that of the account. Only for the account that asked for the link. Open links to the old and to the new address end, and the old address is told.',
  })
    .meta({
      events: ['user.updated'],
      reasons: ['link_invalid', 'other_user', 'already_exists', 'too_many_failures'],
    })
    .input(AddressConfirm)
    .output(AddressConfirmed)
    .mutation(({ ctx, input }) => confirmAddress(ctx, input)),

  showInvitation: rest(anyoneProcedure, '/v1/account/show-invitation', {
    message: 'The invitation.',
    summary: 'Show the invitation of a link',
    description: 'What the link in the mail of an invitation is for, and whether the address has an account.',
  })
    .meta({ onPrimary: true, reasons: ['link_invalid', 'too_many_failures'] })
    .input(InvitationLink)
    .output(z.object({ invitation: ShownInvitation }))
    .query(({ ctx, input }) => showInvitation(ctx, input)),

  signUp: rest(anyoneProcedure, '/v1/account/sign-up', {
    status: 201,
    message: 'Welcome. The invitation is accepted.',
    summary: 'Sign up with an invitation',
    description:
      'Creates the account of an invited address with the link of the mail, accepts the invitation, and returns a token. If the address has an account by then, sign in to it and accept instead.',
  })
    .meta({
      idempotency: 'never',
      events: ['user.created', 'member.added', 'session.started'],
      reasons: ['link_invalid', 'already_exists', 'password_weak', 'too_many_failures'],
    })
    .input(SignUp)
    .output(SignedUp)
    .mutation(({ ctx, input }) => signUp(ctx, input)),

  startExport: rest(signedInProcedure, '/v1/account/start-export', {
    message: 'Export started.',
    summary: 'Export your data',
    description:
      'Collects all rows about the caller in the background, without secrets. Fetch them with `account.getExport` for a day.',
  })
    .meta({ proof: 'always', level: 3, events: ['export.started'], reasons: ['place_full'] })
    .output(ExportStarted)
    .mutation(({ ctx }) => startExport(ctx)),

  getExport: rest(signedInProcedure, '/v1/account/get-export', {
    message: 'Your export.',
    summary: 'Get your export',
    description: 'A part of the last export of the caller: rows of all tables, as JSON.',
  })
    .meta({ proof: 'always', onPrimary: true })
    .input(ExportGet)
    .output(ExportPart)
    .query(({ ctx, input }) => getExport(ctx, input)),

  erase: rest(signedInProcedure, '/v1/account/erase', {
    message: 'Account erased.',
    summary: 'Erase your account',
    description: `Erases the caller for good. ${WHAT_ERASURE_DOES}`,
  })
    .meta(ERASURE)
    .output(Erased)
    .mutation(({ ctx }) => eraseAccount(ctx)),
});
