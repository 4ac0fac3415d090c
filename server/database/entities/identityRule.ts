import { defineEntity, p } from '@mikro-orm/core';
import type { ClaimMatch } from '../../../shared/identityRule.ts';
import { created, identity, refersTo, timestamp } from './columns.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

/** Somebody whose tokens programs may exchange, such as the CI of a company or a Kubernetes cluster. */
export const IdentityIssuer = defineEntity({
  name: 'IdentityIssuer',
  tableName: 'identity_issuers',
  properties: {
    id: identity(),
    /** Exactly as tokens name it. */
    issuer: p.text(),
    /** Null to find it by discovery. */
    jwks_uri: p.text().nullable(),
    /** Fixed keys, of an issuer that can't be reached. */
    jwks: p.json<{ keys: object[] }>().nullable(),
    created_by: () => refersTo(User, 'created_by').nullable().deleteRule('set null'),
    created_at: timestamp().defaultRaw('now()'),
  },
  uniques: [{ properties: ['issuer'] }],
  indexes: [{ properties: ['created_by'], where: 'created_by is not null' }],
});

/** Which tokens of an issuer become credentials of a service account, and what these may do. */
export const IdentityRule = defineEntity({
  name: 'IdentityRule',
  tableName: 'identity_rules',
  properties: {
    id: identity(),
    name: p.text(),
    issuer_id: () => refersTo(IdentityIssuer, 'issuer_id').deleteRule('cascade'),
    audience: p.text(),
    subject: p.text(),
    claims: p.json<ClaimMatch[]>().defaultRaw(`'[]'`),
    /** A service account. */
    user_id: () => refersTo(User, 'user_id').deleteRule('cascade'),
    scopes: p.array(),
    project_id: () => refersTo(Project, 'project_id').nullable().deleteRule('cascade'),
    lifetime_seconds: p.integer(),
    /** Whether each token can be exchanged once. */
    single_use: p.boolean().default(false),
    is_active: p.boolean().default(true),
    created_by: () => refersTo(User, 'created_by').nullable().deleteRule('set null'),
    ...created(),
  },
  indexes: [
    { properties: ['issuer_id', 'subject'] },
    { properties: ['user_id'] },
    { properties: ['project_id'], where: 'project_id is not null' },
    { properties: ['created_by'], where: 'created_by is not null' },
  ],
});

/** A token that was exchanged by a rule for which it works once. */
export const UsedIdentityToken = defineEntity({
  name: 'UsedIdentityToken',
  tableName: 'identity_tokens_used',
  properties: {
    rule_id: () => refersTo(IdentityRule, 'rule_id').primary().deleteRule('cascade'),
    token_hash: p.string().length(64).primary(),
    /** From then on the token is refused anyway. */
    expires_at: timestamp(),
  },
  indexes: [{ properties: ['expires_at'] }],
});
