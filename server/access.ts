import { ROLES, type Role } from '../shared/user.ts';
import type { Caller } from './context.ts';
import { forbidden, unauthorized } from './errors.ts';

type Rule = {
  /** Who may call, in the words of the client's types. */
  callers: string;
  /** Whether a call without a valid token is answered 401. */
  needsSignIn: boolean;
  /** The role that the caller needs in the project that the call acts in. */
  role?: Role;
  /** A right of the user that is enough without the role. */
  right?: 'superadmin' | 'superadmin_billing';
  /** Whether the right is enough only together with a project to act in. */
  rightNeedsProject?: boolean;
};

/**
 * Who may call a procedure: each one names a level of this table by the base procedure in `trpc.ts` that it is built on.
 * Superadmins have the role owner in every project. Finer rules, such as who may delete whose comment, are in `domain/`.
 */
export const ACCESS = {
  anyone: { callers: 'For anyone.', needsSignIn: false },
  signedIn: { callers: 'For every signed-in user.', needsSignIn: true },
  viewer: { callers: 'Requires the role viewer.', needsSignIn: true, role: 'viewer' },
  member: { callers: 'Requires the role member.', needsSignIn: true, role: 'member' },
  ownerOrSuperadmin: {
    callers: 'Requires the role owner, or a superadmin.',
    needsSignIn: true,
    role: 'owner',
    right: 'superadmin',
  },
  billing: {
    callers: 'Requires the role owner, or a user who handles billing.',
    needsSignIn: true,
    role: 'owner',
    right: 'superadmin_billing',
    rightNeedsProject: true,
  },
  superadmin: { callers: 'For superadmins.', needsSignIn: true, right: 'superadmin' },
} as const satisfies Record<string, Rule>;

export type Access = keyof typeof ACCESS;

/** Throws a 401 or 403 unless the caller may call what requires this access. */
export function mustHaveAccess(caller: Caller | undefined, access: Access): void {
  const refusal = refusalTo(caller, access);
  if (refusal) throw refusal;
}

/** Why the caller may not call what requires this access; undefined if they may. */
export function refusalTo(caller: Caller | undefined, access: Access): Error | undefined {
  const { needsSignIn, role, right, rightNeedsProject }: Rule = ACCESS[access];
  if (!needsSignIn) return undefined;
  if (!caller) return unauthorized('Sign in first, and send the token as "Authorization: Bearer …".');
  if (right && caller[right] && (caller.project || !rightNeedsProject)) return undefined;
  if (!role) return right ? forbidden('Only a superadmin may do this.') : undefined;

  const own = caller.project?.role;
  if (!own) return forbidden('You have no access to this project. Select one of yours with the X-Project-Id header.');
  if (ROLES.indexOf(own) >= ROLES.indexOf(role)) return undefined;
  return forbidden(`This requires the role ${role}; yours in this project is ${own}.`);
}
