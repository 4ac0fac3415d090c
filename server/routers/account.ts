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
import { router, signedInProcedure } from '../trpc.ts';

export const accountRouter = router({
  whoAmI: signedInProcedure.output(z.object({ account: Account })).query(({ ctx }) => whoAmI(ctx)),

  signOut: signedInProcedure.output(z.void()).mutation(({ ctx }) => signOut(ctx)),

  signOutEverywhere: signedInProcedure.output(z.void()).mutation(({ ctx }) => signOutEverywhere(ctx)),

  changePassword: signedInProcedure
    .input(PasswordChange)
    .output(PasswordChanged)
    .mutation(({ ctx, input }) => changePassword(ctx, input)),

  startSecondFactor: signedInProcedure
    .input(SecondFactorStart)
    .output(SecondFactorOffer)
    .mutation(({ ctx, input }) => startSecondFactor(ctx, input)),

  confirmSecondFactor: signedInProcedure
    .input(SecondFactorConfirm)
    .output(RecoveryCodes)
    .mutation(({ ctx, input }) => confirmSecondFactor(ctx, input)),

  dropSecondFactor: signedInProcedure
    .input(SecondFactorProof)
    .output(z.void())
    .mutation(({ ctx, input }) => dropSecondFactor(ctx, input)),

  renewRecoveryCodes: signedInProcedure
    .input(SecondFactorProof)
    .output(RecoveryCodes)
    .mutation(({ ctx, input }) => renewRecoveryCodes(ctx, input)),
});
