import { z } from 'zod';
import { flag, id, storedChoice, text, timestamp, untrimmed } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';
import { AuthenticatedUser } from './user.ts';

export const SSO_PURPOSES = ['sign_in', 'link', 'prove'] as const;

const issuerName = untrimmed(40)
  .regex(/^[a-z\d-]{1,40}$/, { error: 'must be a name of auth.listIssuers' })
  .meta({ description: 'The name of the issuer.', example: 'company' });

export const SsoIssuerList = z.object({
  issuers: z
    .array(z.object({ name: issuerName, title: z.string().meta({ description: 'What people call it.' }) }))
    .meta({ description: 'The identity providers where people can sign in.' }),
});

/** 32 random bytes as base64url. */
const random = untrimmed(43).regex(/^[\w-]{43}$/, { error: 'must be 43 characters of base64url' });

export const SsoStart = z.object({
  issuer: issuerName,
  purpose: z.enum(SSO_PURPOSES).default('sign_in').meta({
    description: 'Sign in; link an identity to your account; or prove that it is you, instead of a password.',
  }),
  challenge: random.meta({
    description: 'The SHA-256 of a random `verifier` of 43 characters, which `auth.finishSso` needs; as base64url.',
    example: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  }),
  loopback_port: z.int().min(1024).max(65_535).nullish().meta({
    description: 'For programs: people are sent back to this port of 127.0.0.1 instead of to the page.',
    example: null,
  }),
});
SsoStart.register(requestExamples, {
  example: { issuer: 'company', challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM' },
});
export type SsoStart = z.output<typeof SsoStart>;

export const SsoStarted = z.object({
  url: z.string().meta({ description: 'Where the person signs in.' }),
  state: z.string().meta({ description: 'Identifies this sign-in for ten minutes.' }),
});

export const SsoFinish = z.object({
  state: random.meta({
    description: 'The answer of `auth.startSso`.',
    example: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  }),
  callback: text(8192).meta({
    description: 'What the identity provider appended to the address: everything behind the `?`, percent-encoded.',
    example: 'code=abc&state=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  }),
  verifier: random.meta({
    description: 'What the `challenge` was made of.',
    example: 'M25iVXpKU3puUjFaYWg3T1NDTDQtcW1ROUY5YXlwalN',
  }),
  code: untrimmed(100).nullish().meta({
    description: 'The code of the second factor, or a recovery code, after the reason `code_required`.',
    example: null,
  }),
  is_recovery: flag.meta({ description: 'Whether `code` is a recovery code; false if not sent.' }),
});
export type SsoFinish = z.output<typeof SsoFinish>;

export const SsoFinished = AuthenticatedUser.extend({
  purpose: storedChoice(SSO_PURPOSES).meta({ description: 'What was started.', example: 'sign_in' }),
  token: z.string().nullable().meta({
    description: 'The Bearer token for later calls; null after `link` and `prove`, whose session goes on.',
  }),
}).meta({ id: 'SsoFinished', description: 'The user who signed in, linked or proved.' });
export type SsoFinished = z.output<typeof SsoFinished>;

export const Identity = z
  .object({
    id: id.meta({ description: 'Its id.' }),
    issuer: z.string().meta({ description: 'The address of the identity provider.' }),
    issuer_name: z.string().nullable().meta({ description: 'Its name; null if the settings have it no more.' }),
    issuer_title: z.string().nullable().meta({ description: 'What people call it.' }),
    subject: z.string().meta({ description: "The person's id there.", example: '248289761001' }),
    created_at: timestamp.meta({ description: 'When it was linked.' }),
    last_used_at: timestamp.nullable().meta({ description: 'When it was last used to sign in.' }),
  })
  .meta({ id: 'Identity', description: 'An account at an identity provider that is linked to yours.' });

export const IdentityPage = pageOf('identities', Identity);
export const IdentityList = Page;

export const IdentityChoice = z.object({ id: id.meta({ description: 'The identity.' }) });
export type IdentityChoice = z.output<typeof IdentityChoice>;
