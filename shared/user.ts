import { z } from 'zod';
import { asSent, email, flag, id, newPassword, optionalText, secret, text, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';

export const Authenticate = z.object({
  email,
  password: secret.meta({ description: 'The password; not trimmed.', example: 'demo-password' }),
  token: asSent(4096).nullish().meta({
    description: 'A token from an earlier sign-in with a code: a remembered device needs no code.',
    example: null,
  }),
  code: asSent(100)
    .nullish()
    .meta({ description: 'The code of the second factor, or a recovery code.', example: null }),
  is_recovery: z.boolean().nullish().meta({ description: 'Whether `code` is a recovery code.' }),
});
export type Authenticate = z.output<typeof Authenticate>;

export const AuthenticatedUser = z
  .object({
    needs_code__regeneration: z.boolean().meta({ description: 'Whether two or fewer recovery codes are left.' }),
    warn_message: z.string().meta({ description: 'A warning to show to the user, or "".', example: '' }),
    token: z.string().meta({ description: 'The Bearer token for later calls.', example: 'eyJhbGciOiJIUzI1NiJ9…' }),
    language: z.string().nullable().meta({ description: "The user's language.", example: 'en' }),
    id,
    name: z.string().meta({ description: "The user's name.", example: 'Member' }),
    email: z.string().meta({ description: "The user's e-mail address.", example: 'member@demo.test' }),
    superadmin: z
      .boolean()
      .meta({ description: 'Whether the user has access to every project and manages templates.' }),
    superadmin_billing: z.boolean().meta({ description: 'Whether the user manages the billing of every platform.' }),
    enable_ai: z.boolean().meta({ description: 'Whether AI features are enabled for the user.' }),
  })
  .meta({ id: 'AuthenticatedUser', description: 'The user who signed in, and their token.' });
export type AuthenticatedUser = z.output<typeof AuthenticatedUser>;

/** The roles of members, in ascending order. */
export const ROLES = ['viewer', 'member', 'owner'] as const;
export type Role = (typeof ROLES)[number];

/** A user as superadmins see them. */
export const User = z
  .object({
    id,
    name: z.string().meta({ description: 'Their name.' }),
    email: z.string().meta({ description: 'Their e-mail address.' }),
    language: z.string().nullable().meta({ description: 'Their language.' }),
    superadmin: z.boolean().meta({ description: 'Whether they have access to every project and manage templates.' }),
    superadmin_billing: z.boolean().meta({ description: 'Whether they manage the billing of every platform.' }),
    enable_ai: z.boolean().meta({ description: 'Whether AI features are enabled for them.' }),
    is_active: z.boolean().meta({ description: 'Whether they may sign in.' }),
    default_project_id: id.nullable().meta({ description: 'The project of calls without X-Project-Id.' }),
    has_second_factor: z.boolean().meta({ description: 'Whether signing in requires a code.' }),
    created_at: timestamp.meta({ description: 'When they were created.' }),
    updated_at: timestamp.meta({ description: 'When they were last changed.' }),
  })
  .meta({ id: 'User', description: 'A user.' });

const rights = {
  superadmin: flag.meta({ description: 'Let them access every project and manage templates.' }),
  superadmin_billing: flag.meta({ description: 'Let them manage the billing of every platform.' }),
  enable_ai: flag.meta({ description: 'Enable AI features for them.' }),
  language: optionalText(20).meta({ description: 'Their language.', example: 'en' }),
  default_project_id: id.nullish().meta({ description: 'The project of calls without X-Project-Id.' }),
};

export const UserCreate = z.object({
  name: text(255).meta({ description: 'Their name.' }),
  email,
  password: newPassword.meta({ description: 'Their password.' }),
  ...rights,
});
export type UserCreate = z.output<typeof UserCreate>;

/** Absent fields are not changed; null clears language and default project, and does not change the others. */
export const UserUpdate = z.object({
  id,
  name: optionalText(255).meta({ description: 'Their name.' }),
  email: optionalText(320)
    .pipe(email.nullish())
    .meta({ description: 'Their e-mail address.', format: 'email', example: 'new@demo.test' }),
  password: newPassword.nullish().meta({ description: 'A new password; it signs them out everywhere.', example: null }),
  is_active: flag.meta({ description: 'Whether they may sign in; false signs them out everywhere.' }),
  ...rights,
});
export type UserUpdate = z.output<typeof UserUpdate>;

export const UserChoice = z.object({ id: id.meta({ description: 'The user.' }) });

export const UserList = Page.extend({
  search: optionalText(320).meta({ description: 'Only users whose name or e-mail address contains this.' }),
});
export type UserList = z.output<typeof UserList>;
export const UserPage = pageOf('users', User);
