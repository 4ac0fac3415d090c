import { defineEntity, p } from '@mikro-orm/core';
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
    kind: p.enum([...USER_KINDS]).default('person'),
    /** Services have none. */
    password_hash: p.text().nullable(),
    language: p.text().nullable(),
    superadmin: p.boolean().default(false),
    superadmin_billing: p.boolean().default(false),
    enable_ai: p.boolean().default(false),
    is_active: p.boolean().default(true),
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
    ...created(),
  },
  checks: [
    {
      name: 'users_sign_in_check',
      expression: `case kind when 'service' then password_hash is null and totp_secret is null and totp_pending_secret is null else password_hash is not null end`,
    },
  ],
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
  },
  indexes: [
    { properties: ['user_id'] },
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
  },
  indexes: [{ properties: ['user_id', 'project_id'] }],
});
