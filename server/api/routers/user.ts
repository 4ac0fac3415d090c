import { z } from 'zod';
import {
  Authenticate,
  AuthenticatedUser,
  SecondFactorDrop,
  User,
  UserChoice,
  UserCreate,
  UserList,
  UserPage,
  UserUpdate,
} from '../../../shared/user.ts';
import { authenticate } from '../../domain/account/signIn.ts';
import {
  createUser,
  dropSecondFactorOf,
  hashSentPassword,
  listUsers,
  signOutUser,
  updateUser,
} from '../../domain/account/user.ts';
import { rest, specified } from '../restOperation.ts';
import { anyoneProcedure, router, superadminProcedure } from '../trpc.ts';

const oneUser = z.object({ user: User });

const givesAccess = ({ superadmin, superadmin_billing, password }: UserCreate) =>
  !!superadmin || !!superadmin_billing || password != null;

export const authRouter = router({
  authenticate: specified(anyoneProcedure, '/v1/authenticate', {
    message: 'Signed in.',
    summary: 'Sign in',
    description:
      'Checks e-mail address, password and, if enabled, the second factor. Returns the Bearer token for later calls, and the rights of the user. After 10 failures in 15 minutes for one account from one address, or 100 from one address, it answers 429; so it does for a while after 5 wrong codes for an account.',
    errors: [400, 401, 422, 429, 500],
    bodies: { 400: 'bare', 500: 'bare' },
    envelope: { errors: [] },
  })
    .meta({
      idempotency: 'never',
      events: ['session.started'],
      reasons: ['wrong_credentials', 'code_required', 'code_wrong', 'codes_blocked', 'too_many_failures'],
    })
    .input(Authenticate)
    .output(AuthenticatedUser)
    .mutation(({ ctx, input }) => authenticate(ctx, input)),
});

export const userRouter = router({
  create: rest(superadminProcedure, '/services/platforms/v1/users/create', {
    status: 201,
    message: 'User created.',
    summary: 'Create a user',
    description: 'Creates a person with a password, or a service, which calls with API keys.',
    namesRow: false,
  })
    .meta({
      prepare: hashSentPassword,
      proof: { for: 'a password, or superadmin rights', isNeeded: givesAccess },
      events: ['user.created'],
      reasons: ['already_exists', 'unknown_reference', 'password_weak'],
    })
    .input(UserCreate)
    .output(oneUser)
    .mutation(({ ctx, input }) => createUser(ctx, input)),

  update: rest(superadminProcedure, '/services/platforms/v1/users/update', {
    message: 'User updated.',
    summary: 'Update a user',
    description:
      'Changes the sent fields of a user; a new password or `is_active: false` signs them out everywhere. The own password is changed with `account.changePassword` alone.',
  })
    .meta({
      proof: {
        for: 'a password, an e-mail address, superadmin rights, and to activate somebody',
        isNeeded: ({ password, email, superadmin, superadmin_billing, is_active }: UserUpdate) =>
          [password, email, superadmin, superadmin_billing].some((sent) => sent != null) || is_active === true,
      },
    })
    .meta({
      prepare: hashSentPassword,
      events: ['user.updated', 'user.password_changed', 'webhook.disabled'],
      reasons: ['already_exists', 'unknown_reference', 'password_weak', 'own_account'],
    })
    .input(UserUpdate)
    .output(oneUser)
    .mutation(({ ctx, input }) => updateUser(ctx, input)),

  list: rest(superadminProcedure, '/services/platforms/v1/users/list', {
    message: 'Users.',
    summary: 'List users',
    description: 'Users by id, or those that a text finds, page by page.',
    namesRow: false,
  })
    .input(UserList)
    .output(UserPage)
    .query(({ ctx, input }) => listUsers(ctx, input)),

  signOut: rest(superadminProcedure, '/services/platforms/v1/users/sign-out', {
    message: 'User signed out.',
    summary: 'Sign a user out',
    description: 'Signs a user out everywhere.',
  })
    .meta({ isDestructive: true, events: ['sessions.ended'] })
    .input(UserChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => signOutUser(ctx, input)),

  dropSecondFactor: rest(superadminProcedure, '/services/platforms/v1/users/drop-second-factor', {
    message: 'Second factor disabled.',
    summary: 'Drop the second factor of a user',
    description:
      'Removes the second factor of another user, who has lost it; the own one is dropped with `account.dropSecondFactor`.',
  })
    .meta({ isDestructive: true, proof: 'always', events: ['second_factor.dropped'], reasons: ['own_account'] })
    .input(SecondFactorDrop)
    .output(z.void())
    .mutation(({ ctx, input }) => dropSecondFactorOf(ctx, input)),
});
