import { z } from 'zod';
import { hostnameOf, isLoopback } from './host.ts';

/** Whether http is allowed: only for a provider on the same machine. */
export const isLocalHttp = (address: string): boolean => {
  const url = URL.parse(address);
  return url?.protocol === 'http:' && isLoopback(hostnameOf(address));
};

const isIssuer = (address: string) => {
  const url = URL.parse(address);
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return isPlain && (url.protocol === 'https:' || isLocalHttp(address));
};

const text = (longest: number) => z.string().trim().min(1, 'must not be empty').max(longest, 'is too long');

const SsoIssuer = z.strictObject({
  /** In addresses, settings of providers and commands. */
  name: z.string().regex(/^[a-z\d-]{1,40}$/, 'must be 1 to 40 lower-case letters, digits and hyphens'),
  /** On the button of the sign-in form. */
  title: text(60),
  issuer: z.string().refine(isIssuer, 'must be an address that starts with https://, without ? and #'),
  client_id: text(255),
  client_secret: text(1000).optional(),
  scopes: text(255)
    .refine((scopes) => scopes.split(' ').includes('openid'), 'must contain openid')
    .default('openid email profile'),
  /** Whether somebody without an account gets one. */
  sign_up: z.boolean('must be true or false').default(false),
  groups_claim: text(255).optional(),
  groups: z
    .record(
      text(255),
      z.strictObject({
        project_id: z.int32('must be the id of a project').min(1, 'must be the id of a project'),
        role: z.enum(['viewer', 'member'], 'must be viewer or member: groups make no owners'),
      }),
    )
    .default({}),
  /** Ways to sign in there (`amr`) that need no code of a local second factor. */
  trusted_amr: z.array(text(50)).default([]),
  session_hours: z.int('must be a whole number').min(1, 'must be at least 1').optional(),
});
export type SsoIssuer = z.output<typeof SsoIssuer>;

/** The setting `SSO_ISSUERS`. Messages name the entry and the field, and never a value, which may be a secret. */
export const ssoIssuers = z.string().transform((value, context): SsoIssuer[] => {
  const refuse = (message: string) => {
    context.addIssue(message);
    return z.NEVER;
  };
  const { success, data, error } = z.array(SsoIssuer).max(20).safeParse(parseJson(value));
  if (!success) {
    const [issue] = error.issues;
    const [entry, ...path] = issue?.path ?? [];
    if (typeof entry !== 'number') return refuse('must be a JSON array of at most 20 issuers, as in docs/sso.md');
    const field = path.length > 0 ? ` ${path.join('.')}` : '';
    return refuse(
      `entry ${entry + 1}:${field} ${issue?.code === 'invalid_type' ? 'is missing or has another type' : issue?.message}`,
    );
  }
  for (const field of ['name', 'issuer'] as const)
    if (new Set(data.map((one) => one[field])).size < data.length)
      return refuse(`each entry needs a ${field} of its own`);
  const half = data.findIndex(
    ({ groups, groups_claim }) => Object.keys(groups).length > 0 !== (groups_claim !== undefined),
  );
  return half < 0 ? data : refuse(`entry ${half + 1}: groups and groups_claim must be set together`);
});

function parseJson(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}
