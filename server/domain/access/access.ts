import type { TRPCProcedureType } from '@trpc/server';
import { forbidden, unauthorized } from '../../../shared/errors.ts';
import { lowestRoleWith, ROLES, type Role } from '../../../shared/user.ts';
import type { ActingProject, Caller, CallerKey, ProjectCaller } from './context.ts';
import type { ProofNeed } from './proofNeed.ts';
import { scopesFor } from './scopes.ts';

export type Rule = {
  /** Who may call, in the words of the client's types. */
  callers: string;
  /** Whether a call without a valid token gets a 401. */
  needsSignIn: boolean;
  /** The role that the caller needs in the project that the call acts in; before the input is read, in any project. */
  role?: Role;
  /** A right of the user that is enough without the role. */
  right?: 'superadmin' | 'superadmin_billing';
  /** Whether it acts on the caller's own account. */
  needsAccount?: boolean;
  /** Whether it acts on the API key of the call: any key may call it, and nobody else. */
  needsKey?: boolean;
};

const READER = lowestRoleWith('read');
const WRITER = lowestRoleWith('write');
const MANAGER = lowestRoleWith('manage');

/**
 * Who may call a procedure: each one names a level of this table by the base procedure in `trpc.ts` that it is built on.
 * Superadmins have the role owner in every project. Finer rules, such as who may delete whose comment, are in `domain/`.
 */
export const ACCESS = {
  anyone: { callers: 'For anyone.', needsSignIn: false },
  signedIn: { callers: 'For every signed-in user.', needsSignIn: true, needsAccount: true },
  key: { callers: 'For calls with an API key, whatever its scopes.', needsSignIn: true, needsKey: true },
  viewer: { callers: `Requires the role ${READER}.`, needsSignIn: true, role: READER },
  member: { callers: `Requires the role ${WRITER}.`, needsSignIn: true, role: WRITER },
  ownerOrSuperadmin: {
    callers: `Requires the role ${MANAGER}, or a superadmin.`,
    needsSignIn: true,
    role: MANAGER,
    right: 'superadmin',
  },
  billing: {
    callers: `Requires the role ${MANAGER}, or a user who handles billing.`,
    needsSignIn: true,
    role: MANAGER,
    right: 'superadmin_billing',
  },
  superadmin: { callers: 'For superadmins.', needsSignIn: true, right: 'superadmin' },
} as const satisfies Record<string, Rule>;

export type Access = keyof typeof ACCESS;

/** The highest role that one of these access levels needs. */
export function highestNeeded(levels: Access[]): Role | undefined {
  const needed = new Set(levels.map((access) => (ACCESS[access] as Rule).role));
  return ROLES.findLast((role) => needed.has(role));
}

/** What the access to a procedure depends on. */
type Called = { name: string; type: TRPCProcedureType; access: Access; proof?: ProofNeed | undefined };

/** The 401 or 403 of this caller for a procedure; undefined if they may call it. */
export function accessError(caller: Caller | undefined, called: Called, unidentified?: Error): Error | undefined {
  const { needsSignIn, role, right, needsAccount, needsKey }: Rule = ACCESS[called.access];
  if (!needsSignIn) return undefined;
  if (!caller) return unidentified ?? notSignedIn();
  const keyError = caller.key && errorForKey(caller.key, called);
  if (keyError) return keyError;
  if (needsKey && !caller.key)
    return forbidden('Only a key can call this: send its secret instead of a token.', 'key_required');
  if (needsAccount && caller.id === null) return withoutAccount();
  if (role && caller.isProjectChosen && !caller.project) return withoutProject();
  if (right && caller[right]) return undefined;
  if (!role) return right ? forbidden('Only a superadmin may do this.', 'not_a_superadmin') : undefined;
  return caller.highestRole === null ? withoutProject() : errorForRole(role, caller.highestRole);
}

function errorForKey({ scopes, projectId, isElsewhere }: CallerKey, called: Called): Error | undefined {
  const needed = scopesFor(called);
  if (!needed) return forbidden("An API key can't be used for this: sign in.", 'key_not_allowed');
  const missing = needed.filter((scope) => !scopes.includes(scope));
  if (missing.length > 0) return scopeMissing(missing);
  return isElsewhere ? forbidden(`This key acts only in project ${projectId}.`, 'no_project_access') : undefined;
}

export const scopeMissing = (scopes: readonly string[]) =>
  forbidden(`This requires the scope ${scopes.join(' and ')}.`, 'scope_missing');

/** The project of a call that names no row. Throws a 403 unless the caller has the role there. */
export function actingProject({ project, neededRole, actedIn }: ProjectCaller): ActingProject {
  if (!project || project.role === null) throw withoutProject();
  mustHaveRole(neededRole, project.role);
  actedIn?.push({ project_id: project.id });
  return project;
}

/** Throws a 403 unless this role in a project is high enough. */
export function mustHaveRole(needed: Role, own: Role): void {
  const error = errorForRole(needed, own);
  if (error) throw error;
}

/** The roles that are high enough where this one is needed. */
export const rolesFrom = (needed: Role): Role[] => ROLES_FROM[needed];
const ROLES_FROM = Object.fromEntries(ROLES.map((role, at) => [role, ROLES.slice(at)])) as Record<Role, Role[]>;

/** The caller's account; the operator at the command line has none. */
export function accountOf({ id }: Caller): number {
  if (id === null) throw withoutAccount();
  return id;
}

const errorForRole = (needed: Role, own: Role) =>
  rolesFrom(needed).includes(own)
    ? undefined
    : forbidden(`This requires the role ${needed}; yours in this project is ${own}.`, 'role_missing');

/** The 401 of a call without a token or key. */
export const notSignedIn = () =>
  unauthorized('Sign in first, and send the token as "Authorization: Bearer …".', 'not_signed_in');

/** The 401 of a call with a wrong one. */
export const wrongCredential = (isKey: boolean) =>
  unauthorized(
    isKey
      ? 'This API key is wrong. Check that you send the whole secret.'
      : 'This token is wrong, or its session has ended. Sign in again.',
    'credential_invalid',
  );

export const withoutProject = () =>
  forbidden(
    'You have no access to this project. Select one of yours with the X-Project-Id header.',
    'no_project_access',
  );

const withoutAccount = () => forbidden('This needs an account. Choose one with --as EMAIL.', 'no_account');
