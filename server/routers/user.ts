import { z } from 'zod';
import {
  Authenticate,
  AuthenticatedUser,
  User,
  UserChoice,
  UserCreate,
  UserList,
  UserPage,
  UserUpdate,
} from '../../shared/user.ts';
import { authenticate } from '../domain/signIn.ts';
import { createUser, dropSecondFactorOf, listUsers, signOutUser, updateUser } from '../domain/user.ts';
import { rest } from '../restOperation.ts';
import { anyoneProcedure, router, superadminProcedure } from '../trpc.ts';

const oneUser = z.object({ user: User });

export const authRouter = router({
  authenticate: anyoneProcedure
    .meta(
      rest('/v1/authenticate', {
        message: 'Signed in.',
        summary: 'Sign in',
        description:
          'Checks e-mail address, password and, if enabled, the second factor. Returns the Bearer token for later calls, and the rights of the user. After 10 failures in 15 minutes for one account from one address, or 100 from one address, it answers 429; so it does for a while after 5 wrong codes for an account.',
        errors: [400, 401, 422, 429, 500],
        bodies: { 400: 'bare', 500: 'bare' },
        envelope: { errors: [] },
      }),
    )
    .input(Authenticate)
    .output(AuthenticatedUser)
    .mutation(({ ctx, input }) => authenticate(ctx, input)),
});

export const userRouter = router({
  create: superadminProcedure
    .meta({ command: 'Create a user.' })
    .input(UserCreate)
    .output(oneUser)
    .mutation(({ ctx, input }) => createUser(ctx, input)),

  update: superadminProcedure
    .meta({ command: 'Change a user; a new password or --no-is-active signs them out everywhere.' })
    .input(UserUpdate)
    .output(oneUser)
    .mutation(({ ctx, input }) => updateUser(ctx, input)),

  list: superadminProcedure
    .meta({ command: 'List users.' })
    .input(UserList)
    .output(UserPage)
    .query(({ ctx, input }) => listUsers(ctx, input)),

  signOut: superadminProcedure
    .meta({ command: 'Sign a user out everywhere.' })
    .input(UserChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => signOutUser(ctx, input)),

  dropSecondFactor: superadminProcedure
    .meta({ command: 'Remove the second factor of a user who has lost it.' })
    .input(UserChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => dropSecondFactorOf(ctx, input)),
});
