import { z } from 'zod';
import { recentProof } from './account.ts';
import { fieldsOfUpdate } from './changes.ts';
import { count, FUTURE_TIMESTAMP, flag, id, optionalText, text, timestamp, untrimmed } from './fields.ts';
import { KEY_PREFIX } from './key.ts';
import { LARGEST_INTEGER } from './limits.ts';
import { pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';
import { User } from './user.ts';
import { pausedWebhooks } from './webhook.ts';

const LONGEST_KEY_SET = 65_536;

export const IdentityIssuer = z
  .object({
    id,
    issuer: z.string().meta({ description: 'The issuer, exactly as `iss` in its tokens.', example: 'https://ci.test' }),
    jwks_uri: z.string().nullable().meta({
      description: 'Where its keys are; null for the address that its discovery document names.',
      example: null,
    }),
    has_jwks: z.boolean().meta({ description: 'Whether its keys were given, and are never fetched.', example: false }),
    created_by: id.nullable().meta({ description: 'Who created it.' }),
    created_at: timestamp.meta({ description: 'When it was created.' }),
  })
  .meta({ id: 'IdentityIssuer', description: 'Somebody whose tokens programs may exchange for a credential.' });

export const IssuerCreate = z
  .object({
    issuer: text(500).meta({
      description: 'The issuer, exactly as `iss` in its tokens: with or without a slash at the end.',
      example: 'https://token.actions.githubusercontent.com',
    }),
    jwks_uri: optionalText(500).meta({
      description: 'Where its keys are, if it has no discovery document.',
      example: null,
    }),
    jwks: optionalText(LONGEST_KEY_SET).meta({
      description:
        'Its public keys, as the JSON text of a key set (`{"keys":[…]}`), for an issuer that this service can not reach.',
      example: null,
    }),
    ...recentProof,
  })
  .register(requestExamples, { example: { issuer: 'https://ci.demo.test' } });
export type IssuerCreate = z.output<typeof IssuerCreate>;

export const IssuerChoice = z.object({ id: id.meta({ description: 'The issuer.' }) });
export const IssuerPage = pageOf('issuers', IdentityIssuer);

const claimValue = z.union([untrimmed(500), z.boolean(), count.max(LARGEST_INTEGER)]);

/** A claim that a token must have, with this value: compared exactly, so "1" is not 1. */
export const ClaimMatch = z.object({
  name: text(100).meta({ description: 'The name of the claim.', example: 'repository_owner_id' }),
  value: claimValue.meta({ description: 'Its value: text, a whole number, true or false.', example: '1234' }),
});
export type ClaimMatch = z.output<typeof ClaimMatch>;

const SHORTEST_LIFETIME_SECONDS = 60;
const LONGEST_LIFETIME_SECONDS = 24 * 60 * 60;
const MOST_CLAIMS = 20;

const FIELDS = {
  name: text(255).meta({ description: 'Its name.', example: 'Deployments of acme/app' }),
  audience: text(500).meta({
    description: 'What `aud` must be, or contain: the address of this service, for example. Compared exactly.',
    example: 'https://deckhand.test',
  }),
  subject: text(500).meta({
    description: 'What `sub` must be. Compared exactly, without wildcards.',
    example: 'repo:acme/app:environment:production',
  }),
  claims: z
    .array(ClaimMatch)
    .max(MOST_CLAIMS)
    .meta({
      description: 'Further claims that a token must have, with exactly these values.',
      example: [{ name: 'repository_owner_id', value: '1234' }],
    }),
  user_id: id.meta({ description: 'The service account that its credentials act as.' }),
  lifetime_seconds: z
    .int()
    .min(SHORTEST_LIFETIME_SECONDS)
    .max(LONGEST_LIFETIME_SECONDS)
    .meta({ description: 'How long a credential is valid.', example: 900 }),
};
const project_id = {
  description: 'The only project that they may act in; null for all of the service.',
  example: null,
};
const single_use = { description: 'Whether each token can be exchanged only once.', example: false };

export const IdentityRule = z
  .object({
    id,
    issuer_id: id.meta({ description: 'The issuer of the tokens.' }),
    ...FIELDS,
    scopes: z.array(z.string()).meta({ description: 'What its credentials may call.', example: ['cards:write'] }),
    project_id: id.nullable().meta(project_id),
    single_use: z.boolean().meta(single_use),
    is_active: z.boolean().meta({ description: 'Whether tokens are exchanged.' }),
    created_by: id.nullable().meta({ description: 'Who created it.' }),
    created_at: timestamp.meta({ description: 'When it was created.' }),
    updated_at: timestamp.meta({ description: 'When it was last changed.' }),
  })
  .meta({ id: 'IdentityRule', description: 'Which tokens of an issuer become credentials of a service account.' });

/** The scopes come from the procedures. */
const fieldsWith = (scopes: string[]) => ({
  ...FIELDS,
  scopes: z
    .array(z.enum(scopes))
    .min(1)
    .max(scopes.length)
    .meta({ description: 'What its credentials may call, as for an API key.', example: [scopes[0]] }),
  project_id: id.nullish().meta(project_id),
  single_use: flag.meta(single_use),
});

export const RuleCreate = (scopes: string[]) =>
  z
    .object({
      issuer_id: id.meta({ description: 'The issuer of the tokens.' }),
      ...fieldsWith(scopes),
      claims: FIELDS.claims.default([]),
      ...recentProof,
    })
    .register(requestExamples, {
      example: {
        ...{ issuer_id: 1, name: 'Deployments', audience: 'https://deckhand.test', user_id: 7 },
        ...{ subject: 'repo:acme/app:environment:production', scopes: ['cards:write'], lifetime_seconds: 900 },
      },
    });
export type RuleCreate = z.output<ReturnType<typeof RuleCreate>>;

const optionally = <Schema extends z.ZodType>(schema: Schema) => schema.nullish().meta(schema.meta() ?? {});

export const RuleUpdate = (scopes: string[]) => {
  const { name, audience, subject, claims, user_id, lifetime_seconds, ...others } = fieldsWith(scopes);
  const changes = {
    ...{ name: optionally(name), audience: optionally(audience), subject: optionally(subject) },
    ...{ claims: optionally(claims), user_id: optionally(user_id), lifetime_seconds: optionally(lifetime_seconds) },
    ...others,
    scopes: optionally(others.scopes),
    is_active: flag.meta({ description: 'Whether tokens are exchanged; false ends its credentials.' }),
  };
  return z
    .object({
      id: id.meta({ description: 'The rule.' }),
      ...fieldsOfUpdate(changes, IdentityRule),
      ...recentProof,
    })
    .register(requestExamples, { example: { id: 1, lifetime_seconds: 600 } });
};
export type RuleUpdate = z.output<ReturnType<typeof RuleUpdate>>;

export const RuleChoice = z.object({ id: id.meta({ description: 'The rule.' }) });
export const RulePage = pageOf('rules', IdentityRule);

/** What ended with a rule. */
export const EndedCredentials = z.object({
  credentials_ended: count.meta({ description: 'How many credentials ended by it.', example: 1 }),
  paused_webhooks: pausedWebhooks,
});
export type EndedCredentials = z.output<typeof EndedCredentials>;
export const ChangedRule = z.object({ rule: IdentityRule, ...EndedCredentials.shape });

const LONGEST_TOKEN = 16_384;

export const Exchange = z.object({
  token: untrimmed(LONGEST_TOKEN).min(1).meta({
    description: 'The token of the issuer: a JSON Web Token.',
    example: 'eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ…',
  }),
  rule_id: id.nullish().meta({ description: 'The rule, where several accept the token.', example: null }),
});
export type Exchange = z.output<typeof Exchange>;

export const Exchanged = z
  .object({
    token: z.string().meta({ description: 'The credential: the Bearer token of calls.', example: `${KEY_PREFIX}…` }),
    expires_at: timestamp.meta({ description: 'When it ends.', example: FUTURE_TIMESTAMP }),
    expires_in_seconds: count.meta({ description: 'In how many seconds it ends.', example: 900 }),
    user: User.pick({ id: true, name: true }).meta({ description: 'The service account that it acts as.' }),
    scopes: z.array(z.string()).meta({ description: 'What it may call.', example: ['cards:write'] }),
    project_id: id.nullable().meta({ description: 'The only project that it acts in; null for all of the service.' }),
    rule_id: id.meta({ description: 'The rule that accepted the token.' }),
  })
  .meta({ id: 'ExchangedCredential', description: 'A credential of a service account, for a short time.' });
