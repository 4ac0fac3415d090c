import { defineEntity, p } from '@mikro-orm/core';
import { created, identity, refersTo, timestamp } from './columns.ts';
import { IdentityRule } from './identityRule.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

/** A key of a user for programs. Only hashes of its secrets are stored. */
export const ApiKey = defineEntity({
  name: 'ApiKey',
  tableName: 'api_keys',
  properties: {
    id: identity(),
    user_id: () => refersTo(User, 'user_id').deleteRule('cascade'),
    project_id: () => refersTo(Project, 'project_id').nullable().deleteRule('cascade'),
    /** Set for the credential of `auth.exchange`: it ends with its rule. */
    rule_id: () => refersTo(IdentityRule, 'rule_id').nullable().deleteRule('cascade'),
    name: p.text(),
    scopes: p.array(),
    /** Whether `scopes` has `grants:write` if it may grant; false for keys of before that scope existed. */
    names_grants: p.boolean().default(false),
    secret_hash: p.text(),
    /** The secret before the last rotation, which is valid for a while. */
    previous_hash: p.text().nullable(),
    previous_expires_at: timestamp().nullable(),
    expires_at: timestamp().nullable(),
    /** When it got its secret, if that is not the first one: the largest age counts from then. */
    rotated_at: timestamp().nullable(),
    /** When the log last warned that it ends soon. */
    warned_at: timestamp().nullable(),
    /** To the minute. */
    last_used_at: timestamp().nullable(),
    revoked_at: timestamp().nullable(),
    ...created(),
  },
  checks: [
    {
      name: 'api_keys_previous_check',
      expression: '(previous_hash is null) = (previous_expires_at is null)',
    },
  ],
  uniques: [
    { properties: ['secret_hash'] },
    {
      name: 'api_keys_previous_hash_unique',
      expression:
        'create unique index "api_keys_previous_hash_unique" on "api_keys" ("previous_hash") where previous_hash is not null',
    },
  ],
  indexes: [
    { properties: ['user_id', 'id'] },
    { properties: ['project_id'], where: 'project_id is not null' },
    { name: 'api_keys_rule_index', properties: ['rule_id', 'expires_at'], where: 'rule_id is not null' },
    // For the removal of expired credentials.
    { name: 'api_keys_exchanged_index', properties: ['expires_at'], where: 'rule_id is not null' },
  ],
});
