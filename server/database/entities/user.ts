import { defineEntity, p } from '@mikro-orm/core';
import { SSO_PURPOSES } from '../../../shared/sso.ts';
import { ROLES, USER_KINDS } from '../../../shared/user.ts';
import { created, identity, refersTo, timestamp } from './columns.ts';
import { Project } from './platform.ts';

export const User = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: identity(),
    name: p.text(),
    /** Of a service: a generated handle. */
    email: p.text(),
    /** When it was known to be theirs: by a link in a mail, or since a superadmin entered it. */
    email_confirmed_at: timestamp().nullable().defaultRaw('now()'),
    kind: p.enum([...USER_KINDS]).default('person'),
    /** Services have none, nor do persons who sign in at an identity provider alone. */
    password_hash: p.text().nullable(),
    language: p.text().nullable(),
    superadmin: p.boolean().default(false),
    superadmin_billing: p.boolean().default(false),
    enable_ai: p.boolean().default(false),
    is_active: p.boolean().default(true),
    /** When it became inactive: webhooks that were paused with it go on when it is activated. */
    deactivated_at: timestamp().nullable(),
    default_project_id: () => refersTo(Project, 'default_project_id').nullable().deleteRule('set null'),
    /** Instead of the default rate limit. */
    rate_limit_per_minute: p.integer().nullable(),
    /** Set while the second factor is enabled; encrypted. */
    totp_secret: p.text().nullable(),
    /** Offered, but not yet confirmed with a code; encrypted. */
    totp_pending_secret: p.text().nullable(),
    /** The time step of the last used code, so that no code works twice. */
    totp_last_step: p.integer().default(0),
    /** Wrong codes since the last right one, and until when codes are blocked. */
    totp_failures: p.integer().default(0),
    totp_blocked_until: timestamp().nullable(),
    /** They are gone: only the id is left, for what refers to it. */
    erased_at: timestamp().nullable(),
    ...created(),
  },
  checks: [
    { name: 'users_erased_check', expression: 'erased_at is null or not is_active' },
    {
      name: 'users_sign_in_check',
      expression: `case kind when 'service' then password_hash is null and totp_secret is null and totp_pending_secret is null else true end`,
    },
  ],
  indexes: [{ name: 'users_superadmins_index', properties: ['id'], where: 'superadmin' }],
  uniques: [
    { name: 'users_email_unique', expression: 'create unique index "users_email_unique" on "users" (lower("email"))' },
  ],
});

export const RecoveryCode = defineEntity({
  name: 'RecoveryCode',
  tableName: 'recovery_codes',
  properties: {
    id: identity(),
    user_id: () => refersTo(User, 'user_id').deleteRule('cascade'),
    code_hash: p.text(),
    used_at: timestamp().nullable(),
  },
  uniques: [{ properties: ['user_id', 'code_hash'] }],
});

/** The account of a person at an identity provider; the subject is their id there. */
export const Identity = defineEntity({
  name: 'Identity',
  tableName: 'identities',
  properties: {
    id: identity(),
    user_id: () => refersTo(User, 'user_id').deleteRule('cascade'),
    issuer: p.text(),
    subject: p.text(),
    created_at: timestamp().defaultRaw('now()'),
    last_used_at: timestamp().nullable(),
  },
  uniques: [{ properties: ['issuer', 'subject'] }],
  indexes: [{ properties: ['user_id'] }],
});

/** A token is valid while its session is neither revoked nor expired. */
export const Session = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  properties: {
    id: p.uuid().primary().defaultRaw('gen_random_uuid()'),
    user_id: () => refersTo(User, 'user_id').deleteRule('cascade'),
    /** When the second factor was checked: the device is remembered for 30 days from then. */
    second_factor_at: timestamp().nullable(),
    /** When the password, and a code if a second factor is enabled, were last given. */
    proven_at: timestamp().nullable(),
    created_at: timestamp().defaultRaw('now()'),
    expires_at: timestamp(),
    revoked_at: timestamp().nullable(),
    /** Of a sign-in at an identity provider: ends with it. */
    identity_id: () => refersTo(Identity, 'identity_id').nullable().deleteRule('cascade'),
    /** The session there (`sid`), which a back-channel logout names. */
    issuer_session: p.text().nullable(),
  },
  indexes: [
    { properties: ['user_id'] },
    { properties: ['identity_id'], where: 'identity_id is not null' },
    { properties: ['issuer_session'], where: 'issuer_session is not null' },
    // For the removal of expired sessions; those of remembered devices are kept longer.
    { name: 'sessions_expired_index', properties: ['expires_at'], where: 'second_factor_at is null' },
    { name: 'sessions_remembered_index', properties: ['second_factor_at'], where: 'second_factor_at is not null' },
  ],
});

export const Member = defineEntity({
  name: 'Member',
  tableName: 'members',
  properties: {
    project_id: () => refersTo(Project, 'project_id').primary().deleteRule('cascade'),
    user_id: () => refersTo(User, 'user_id').primary().deleteRule('cascade'),
    role: p.enum([...ROLES]),
    created_at: timestamp().defaultRaw('now()'),
    /** The issuer whose groups made it; null if a person did, or has changed it since. */
    issuer: p.text().nullable(),
  },
  indexes: [{ properties: ['user_id', 'project_id'] }],
});

/** A logout token of an identity provider that has ended sessions: it works once. */
export const UsedLogoutToken = defineEntity({
  name: 'UsedLogoutToken',
  tableName: 'logout_tokens_used',
  properties: {
    token_hash: p.string().length(64).primary(),
    /** From then on the token is refused anyway. */
    expires_at: timestamp(),
  },
  indexes: [{ properties: ['expires_at'] }],
});

/** A sign-in at an identity provider that is under way. */
export const SsoFlow = defineEntity({
  name: 'SsoFlow',
  tableName: 'sso_flows',
  properties: {
    state_hash: p.string().length(64).primary(),
    /** The name in `SSO_ISSUERS`. */
    issuer: p.text(),
    purpose: p.enum([...SSO_PURPOSES]),
    /** The hash of what only the browser or command knows that started it. */
    challenge: p.text(),
    nonce: p.text(),
    /** Who links or proves, and in which session. */
    user_id: () => refersTo(User, 'user_id').nullable().deleteRule('cascade'),
    session_id: () =>
      p
        .manyToOne(Session)
        .mapToPk()
        .fieldName('session_id')
        .updateRule('no action')
        .deleteRule('cascade')
        .nullable()
        .$type<string>(),
    /** Where the command line listens. */
    loopback_port: p.integer().nullable(),
    /** When the code was sent to the provider: it works once. */
    exchanged_at: timestamp().nullable(),
    /** What the provider's token says, once it is verified. */
    claims: p.json<Record<string, unknown>>().nullable(),
    created_at: timestamp().defaultRaw('now()'),
    expires_at: timestamp(),
  },
  indexes: [
    { properties: ['expires_at'] },
    { properties: ['user_id'], where: 'user_id is not null' },
    { properties: ['session_id'], where: 'session_id is not null' },
  ],
});
