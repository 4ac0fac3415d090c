import { z } from 'zod';
import { Erased, UserErase } from '../../../shared/erasure.ts';
import { Exchange, Exchanged } from '../../../shared/identityRule.ts';
import { Activated, Deactivated } from '../../../shared/leaving.ts';
import { SsoFinish, SsoFinished, SsoIssuerList, SsoStart, SsoStarted } from '../../../shared/sso.ts';
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
import { eraseUser } from '../../domain/account/erasure.ts';
import { exchangeToken } from '../../domain/account/exchange.ts';
import { authenticate } from '../../domain/account/signIn.ts';
import { listIssuers, startSso } from '../../domain/account/sso.ts';
import { finishSso } from '../../domain/account/ssoFinish.ts';
import {
  activateUser,
  createUser,
  deactivateUser,
  dropSecondFactorOf,
  hashSentPassword,
  listUsers,
  signOutUser,
  updateUser,
} from '../../domain/account/user.ts';
import { rest, specified } from '../restOperation.ts';
import { anyoneProcedure, router, superadminProcedure } from '../trpc.ts';
import { ERASURE, WHAT_ERASURE_DOES } from './account.ts';

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

  listIssuers: rest(anyoneProcedure, '/v1/auth/list-issuers', {
    message: 'Identity providers.',
    summary: 'List identity providers',
    description: 'The identity providers of the settings, where people can sign in.',
    errors: [400, 422, 429],
  })
    .output(SsoIssuerList)
    .query(({ ctx }) => listIssuers(ctx)),

  startSso: rest(anyoneProcedure, '/v1/auth/start-sso', {
    message: 'Sign-in started.',
    summary: 'Start a sign-in at an identity provider',
    description:
      'Returns the address where the person signs in. The provider sends them back to `/sso/callback`, with several providers followed by `/` and its name; `auth.finishSso` takes what it appends. To link an identity, which needs fresh proof (`account.prove`), or to prove that it is you, call it with your token.',
    errors: [400, 401, 403, 422, 429, 500],
  })
    .meta({
      level: 3,
      idempotency: 'never',
      reasons: [
        ...(['sso_unknown_issuer', 'sso_unavailable', 'sso_refused'] as const),
        ...(['not_signed_in', 'key_not_allowed', 'proof_required'] as const),
      ],
    })
    .input(SsoStart)
    .output(SsoStarted)
    .mutation(({ ctx, input }) => startSso(ctx, input)),

  finishSso: rest(anyoneProcedure, '/v1/auth/finish-sso', {
    message: 'Signed in.',
    summary: 'Finish a sign-in at an identity provider',
    description:
      'Checks what the identity provider sent, and the second factor, if it is enabled and the provider asked for none that is trusted. Returns the Bearer token for later calls. An identity is never matched by e-mail address: it is linked by its owner, or belongs to a new account, if the issuer allows sign-ups.',
    errors: [400, 401, 403, 422, 429, 500],
  })
    .meta({
      level: 3,
      idempotency: 'never',
      events: [
        ...(['session.started', 'session.proven', 'user.created', 'identity.linked'] as const),
        ...(['member.added', 'member.updated', 'member.removed', 'webhook.disabled'] as const),
      ],
      reasons: [
        ...(['sso_unknown_issuer', 'sso_unavailable', 'sso_refused', 'sso_expired'] as const),
        ...(['account_exists', 'no_account_here'] as const),
        ...(['code_required', 'code_wrong', 'codes_blocked', 'too_many_failures'] as const),
      ],
    })
    .input(SsoFinish)
    .output(SsoFinished)
    .mutation(({ ctx, input }) => finishSso(ctx, input)),

  exchange: rest(anyoneProcedure, '/v1/auth/exchange', {
    message: 'Token exchanged.',
    summary: 'Exchange a token of another issuer',
    description:
      'Turns a token of an issuer that superadmins have added, such as that of a CI job, into a credential of a service account, by a rule. It works like an API key until it ends.',
    errors: [400, 401, 422, 429, 500],
  })
    .meta({
      idempotency: 'never',
      events: ['key.exchanged'],
      level: 3,
      reasons: ['identity_token_invalid', 'identity_keys_unreadable', 'too_many_failures', 'place_full'],
    })
    .input(Exchange)
    .output(Exchanged)
    .mutation(({ ctx, input }) => exchangeToken(ctx, input)),
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
        for: 'a password, an e-mail address, superadmin rights, and to activate or deactivate somebody',
        isNeeded: ({ password, email, superadmin, superadmin_billing, is_active }: UserUpdate) =>
          [password, email, superadmin, superadmin_billing, is_active].some((sent) => sent != null),
      },
    })
    .meta({
      prepare: hashSentPassword,
      events: ['user.updated', 'user.password_changed', 'identity.unlinked', 'webhook.disabled', 'webhook.updated'],
      reasons: ['already_exists', 'unknown_reference', 'password_weak', 'own_account', 'last_superadmin'],
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

  deactivate: rest(superadminProcedure, '/services/platforms/v1/users/deactivate', {
    message: 'User deactivated.',
    summary: 'Deactivate a user',
    description:
      'Refuses whatever a user holds from the next request on: sessions end, API keys and streams are refused, webhooks are switched off. The answer says what it touched, and which projects have no other active owner. `users.activate` undoes it.',
  })
    .meta({
      isDestructive: true,
      proof: 'always',
      events: ['user.updated', 'identity.unlinked', 'webhook.disabled'],
      reasons: ['last_superadmin'],
    })
    .input(UserChoice)
    .output(Deactivated)
    .mutation(({ ctx, input }) => deactivateUser(ctx, input)),

  activate: rest(superadminProcedure, '/services/platforms/v1/users/activate', {
    message: 'User activated.',
    summary: 'Activate a user',
    description:
      'Undoes a deactivation: API keys work again, and webhooks that it switched off go on, unless somebody changed them since. Sessions stay ended.',
  })
    .meta({ proof: 'always', events: ['user.updated', 'webhook.updated'] })
    .input(UserChoice)
    .output(Activated)
    .mutation(({ ctx, input }) => activateUser(ctx, input)),

  signOut: rest(superadminProcedure, '/services/platforms/v1/users/sign-out', {
    message: 'User signed out.',
    summary: 'Sign a user out',
    description: 'Signs a user out everywhere.',
  })
    .meta({ isDestructive: true, events: ['sessions.ended', 'identity.unlinked'] })
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

  erase: rest(superadminProcedure, '/services/platforms/v1/users/erase', {
    message: 'User erased.',
    summary: 'Erase a user',
    description: `Erases a user for good. ${WHAT_ERASURE_DOES}`,
  })
    .meta(ERASURE)
    .input(UserErase)
    .output(Erased)
    .mutation(({ ctx, input }) => eraseUser(ctx, input)),
});
