import { z } from 'zod';
import {
  Account,
  PasswordChange,
  PasswordChanged,
  RecoveryCodes,
  SecondFactorConfirm,
  SecondFactorOffer,
  SecondFactorProof,
  SecondFactorStart,
} from '../../shared/account.ts';
import {
  changePassword,
  confirmSecondFactor,
  dropSecondFactor,
  renewRecoveryCodes,
  signOut,
  signOutEverywhere,
  startSecondFactor,
  whoAmI,
} from '../domain/account.ts';
import { rest } from '../restOperation.ts';
import { router, signedInProcedure } from '../trpc.ts';

export const accountRouter = router({
  whoAmI: signedInProcedure
    .meta(
      rest('/v1/account/who-am-i', {
        message: 'Your account.',
        summary: 'Get your account',
        description: 'The account of the caller, with the number of recovery codes left.',
        namesRow: false,
      }),
    )
    .output(z.object({ account: Account }))
    .query(({ ctx }) => whoAmI(ctx)),

  signOut: signedInProcedure
    .meta(
      rest('/v1/account/sign-out', {
        message: 'Signed out.',
        summary: 'Sign out',
        description: 'Ends the session of the token.',
        namesRow: false,
      }),
    )
    .output(z.void())
    .mutation(({ ctx }) => signOut(ctx)),

  signOutEverywhere: signedInProcedure
    .meta(
      rest('/v1/account/sign-out-everywhere', {
        message: 'Signed out everywhere.',
        summary: 'Sign out everywhere',
        description: 'Ends all sessions of the caller; no device is remembered any more.',
        namesRow: false,
      }),
    )
    .output(z.void())
    .mutation(({ ctx }) => signOutEverywhere(ctx)),

  changePassword: signedInProcedure
    .meta(
      rest('/v1/account/change-password', {
        message: 'Password changed.',
        summary: 'Change your password',
        description: 'Changes the password, ends all sessions, and returns the token of a new one.',
        namesRow: false,
      }),
    )
    .meta({ once: 'secret' })
    .input(PasswordChange)
    .output(PasswordChanged)
    .mutation(({ ctx, input }) => changePassword(ctx, input)),

  startSecondFactor: signedInProcedure
    .meta(
      rest('/v1/account/start-second-factor', {
        message: 'Second factor offered.',
        summary: 'Start a second factor',
        description: 'Returns a secret for an authenticator app. It is enabled once a code confirms it.',
        namesRow: false,
      }),
    )
    .meta({ once: 'secret' })
    .input(SecondFactorStart)
    .output(SecondFactorOffer)
    .mutation(({ ctx, input }) => startSecondFactor(ctx, input)),

  confirmSecondFactor: signedInProcedure
    .meta(
      rest('/v1/account/confirm-second-factor', {
        message: 'Second factor enabled.',
        summary: 'Confirm the second factor',
        description: 'Enables the second factor with a code of the app, and returns the recovery codes once.',
        namesRow: false,
      }),
    )
    .meta({ once: 'secret' })
    .input(SecondFactorConfirm)
    .output(RecoveryCodes)
    .mutation(({ ctx, input }) => confirmSecondFactor(ctx, input)),

  dropSecondFactor: signedInProcedure
    .meta(
      rest('/v1/account/drop-second-factor', {
        message: 'Second factor disabled.',
        summary: 'Drop the second factor',
        description: 'Disables the second factor: the password alone signs in from now on.',
        namesRow: false,
      }),
    )
    .meta({ once: 'inSteps' })
    .input(SecondFactorProof)
    .output(z.void())
    .mutation(({ ctx, input }) => dropSecondFactor(ctx, input)),

  renewRecoveryCodes: signedInProcedure
    .meta(
      rest('/v1/account/renew-recovery-codes', {
        message: 'Recovery codes created.',
        summary: 'Renew recovery codes',
        description: 'Returns new recovery codes once; the old ones are invalid.',
        namesRow: false,
      }),
    )
    .meta({ once: 'secret' })
    .input(SecondFactorProof)
    .output(RecoveryCodes)
    .mutation(({ ctx, input }) => renewRecoveryCodes(ctx, input)),
});
