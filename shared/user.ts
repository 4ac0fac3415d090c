import { z } from 'zod';
import { fieldsOfUpdate } from './changes.ts';
import {
  email,
  flag,
  id,
  newPassword,
  optionalText,
  REQUIRED_UNLESS,
  secret,
  storedChoice,
  text,
  timestamp,
  untrimmed,
} from './fields.ts';
import { LARGEST_INTEGER } from './limits.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

export const Authenticate = z.object({
  email,
  password: secret.meta({ description: 'The password; not trimmed.', example: 'demo-password' }),
  token: untrimmed(4096).nullish().meta({
    description: 'A token from an earlier sign-in with a code: a remembered device needs no code.',
    example: null,
  }),
  code: untrimmed(100)
    .nullish()
    .meta({ description: 'The code of the second factor, or a recovery code.', example: null }),
  is_recovery: z.boolean().nullish().meta({ description: 'Whether `code` is a recovery code; false if not sent.' }),
});
export type Authenticate = z.output<typeof Authenticate>;

export const AuthenticatedUser = z
  .object({
    needs_code__regeneration: z.boolean().meta({ description: 'Whether two or fewer recovery codes are left.' }),
    warn_message: z.string().meta({ description: 'A warning to show to the user, or "".', example: '' }),
    token: z.string().meta({ description: 'The Bearer token for later calls.', example: 'eyJhbGciOiJIUzI1NiJ9…' }),
    language: z.string().nullable().meta({ description: "The user's language.", example: 'en' }),
    id: id.meta({ description: "The user's id.", example: 3 }),
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

/** What a member may do in a project, by role, in ascending order. Rules ask for a permission, so that only this table names roles. */
const PERMISSIONS = {
  viewer: ['read'],
  member: ['read', 'write'],
  owner: ['read', 'write', 'manage'],
} as const satisfies Record<string, readonly Permission[]>;
type Permission = 'read' | 'write' | 'manage';

export type Role = keyof typeof PERMISSIONS;
export const ROLES = Object.keys(PERMISSIONS) as [Role, ...Role[]];
/** Superadmins have it in every project. */
export const HIGHEST_ROLE = ROLES.at(-1) as Role;

export const isHigher = (role: Role, other: Role): boolean => ROLES.indexOf(role) > ROLES.indexOf(other);

export const rolesWith = (permission: Permission): Role[] => ROLES.filter((role) => isAllowed(role, permission));
/** The role that a call needs for this. */
export const lowestRoleWith = (permission: Permission): Role => rolesWith(permission)[0] as Role;
export const isAllowed = (role: Role | null, permission: Permission): boolean =>
  role !== null && (PERMISSIONS[role] as readonly Permission[]).includes(permission);

/** A service is a program: it has no password and calls with API keys. */
export const USER_KINDS = ['person', 'service'] as const;

export const User = z
  .object({
    id: id.meta({ description: 'Their id.' }),
    name: z.string().meta({ description: 'Their name.' }),
    email: z.string().meta({ description: 'Their e-mail address; of a service, a generated handle.' }),
    email_confirmed_at: timestamp.nullable().meta({
      description: 'Since when the address is known to be theirs; null if nobody has confirmed it.',
    }),
    kind: storedChoice(USER_KINDS).meta({ description: 'Whether it is a person, or a program that never signs in.' }),
    language: z.string().nullable().meta({ description: 'Their language.' }),
    superadmin: z.boolean().meta({ description: 'Whether they have access to every project and manage templates.' }),
    superadmin_billing: z.boolean().meta({ description: 'Whether they manage the billing of every platform.' }),
    enable_ai: z.boolean().meta({ description: 'Whether AI features are enabled for them.' }),
    is_active: z.boolean().meta({ description: 'Whether they may sign in.' }),
    default_project_id: id.nullable().meta({ description: 'The project of calls that name no project and no row.' }),
    rate_limit_per_minute: z
      .int()
      .min(1)
      .nullable()
      .meta({ description: 'Their own rate limit, in calls per minute; null for that of the service.', example: null }),
    has_password: z.boolean().meta({ description: 'Whether they can sign in with a password.' }),
    has_second_factor: z.boolean().meta({ description: 'Whether signing in requires a code.' }),
    erased_at: timestamp.nullable().meta({ description: 'When they were erased: only the id is left.', example: null }),
    created_at: timestamp.meta({ description: 'When they were created.' }),
    updated_at: timestamp.meta({ description: 'When they were last changed.' }),
  })
  .meta({ id: 'User', description: 'A user.' });

const rights = {
  superadmin: flag.meta({ description: 'Whether they have access to every project and manage templates.' }),
  superadmin_billing: flag.meta({ description: 'Whether they manage the billing of every platform.' }),
  enable_ai: flag.meta({ description: 'Whether AI features are enabled for them.' }),
  language: optionalText(20).meta({ description: 'Their language.', example: 'en' }),
  default_project_id: id.nullish().meta({ description: 'The project of calls that name no project and no row.' }),
  rate_limit_per_minute: z.int().min(1).max(LARGEST_INTEGER).nullish().meta({
    description: 'Their own rate limit, in calls per minute, instead of that of the service.',
    example: 6000,
  }),
};

/** Required for persons; services have none. */
const ofPersons = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.optional().meta({ ...schema.meta(), description, [REQUIRED_UNLESS]: { kind: 'service' } });

export const UserCreate = z
  .object({
    name: text(255).meta({ description: 'Their name.' }),
    kind: z
      .enum(USER_KINDS)
      .default('person')
      .meta({ description: 'A person, or a service, which calls with API keys.' }),
    email: ofPersons(email, 'Their e-mail address; services get a handle instead.'),
    password: ofPersons(newPassword, 'Their password; services have none.'),
    ...rights,
  })
  .check(({ value, issues }) => {
    for (const field of ['email', 'password'] as const) {
      const isSent = value[field] !== undefined;
      if (isSent !== (value.kind === 'service')) continue;
      const message = isSent ? 'is only for persons' : 'is required';
      issues.push({ code: 'custom', input: value[field], path: [field], message });
    }
  });
UserCreate.register(requestExamples, {
  example: { name: 'Ann', email: 'ann@demo.test', password: 'a long sentence', default_project_id: 1 },
});
export type UserCreate = z.output<typeof UserCreate>;

const changes = {
  name: optionalText(255).meta({ description: 'Their name.' }),
  email: optionalText(320)
    .pipe(email.nullish())
    .meta({ description: 'Their e-mail address.', format: 'email', example: 'new@demo.test' }),
  password: newPassword.nullish().meta({ description: 'A new password; it signs them out everywhere.', example: null }),
  is_active: flag.meta({ description: 'Whether they may sign in; false signs them out everywhere.' }),
  ...rights,
};
export const UserUpdate = z.object({
  id: id.meta({ description: 'The user.' }),
  ...fieldsOfUpdate(changes, User),
});
UserUpdate.register(requestExamples, { example: { id: 3, name: 'Our member', language: 'en' } });
export type UserUpdate = z.output<typeof UserUpdate>;

export const UserChoice = z.object({ id: id.meta({ description: 'The user.' }) });
UserChoice.register(requestExamples, { example: { id: 3 } });
export const SecondFactorDrop = UserChoice.clone().register(requestExamples, { example: { id: 6 } });

export const UserList = Page.extend({
  id: id.nullish().meta({ description: 'Only the user with this id.' }),
  search: optionalText(320).meta({
    description:
      'Only users whose name or e-mail address contains this; a whole number also finds the user with this id.',
  }),
});
UserList.register(requestExamples, { example: { search: 'demo', limit: 20 } });
export type UserList = z.output<typeof UserList>;
export const UserPage = pageOf('users', User);
