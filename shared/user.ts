import { z } from 'zod';
import { id, secret } from './fields.ts';

export const Authenticate = z.object({
  email: z
    .string()
    .trim()
    .min(1)
    .meta({ format: 'email', description: 'The e-mail address of the account.', example: 'member@demo.test' })
    .pipe(z.email()),
  password: secret.meta({ description: 'The password, taken as sent.', example: 'demo-password' }),
  token: z
    .string()
    .nullish()
    .meta({ description: 'A token of an earlier sign-in with a second factor: a remembered device needs no code.' }),
  code: z.string().nullish().meta({ description: 'The code of the second factor, or a recovery code.' }),
  is_recovery: z.boolean().nullish().meta({ description: 'Whether `code` is a recovery code.' }),
});
export type Authenticate = z.output<typeof Authenticate>;

export const AuthenticatedUser = z
  .object({
    needs_code__regeneration: z.boolean().meta({ description: 'Whether two or fewer recovery codes are left.' }),
    warn_message: z.string().meta({ description: 'A warning to show to the user, or "".', example: '' }),
    token: z.string().meta({ description: 'The Bearer token of later calls.', example: 'eyJhbGciOiJIUzI1NiJ9…' }),
    language: z.string().nullable().meta({ description: "The user's language.", example: 'en' }),
    id,
    name: z.string().meta({ description: "The user's name.", example: 'Member' }),
    email: z.string().meta({ description: "The user's e-mail address.", example: 'member@demo.test' }),
    superadmin: z.boolean().meta({ description: 'Whether the user may act in every project and keep templates.' }),
    superadmin_billing: z.boolean().meta({ description: 'Whether the user may handle billing of every platform.' }),
    enable_ai: z.boolean().meta({ description: 'Whether AI features are enabled for the user.' }),
  })
  .meta({ id: 'AuthenticatedUser' });
export type AuthenticatedUser = z.output<typeof AuthenticatedUser>;

/** What a member may do in a project, from least to most. */
export const ROLES = ['viewer', 'member', 'owner'] as const;
export type Role = (typeof ROLES)[number];
