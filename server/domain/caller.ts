import { sql } from 'kysely';
import { ROLES, type Role } from '../../shared/user.ts';
import { type EntityManager, query } from '../database/query.ts';
import { forbidden, unauthorized } from '../errors.ts';
import type { Claims } from '../security/tokens.ts';

/** What a procedure asks of its caller, from least to most. */
export type Access = 'anyone' | 'signedIn' | Role | 'superadmin';

export type Caller = {
  id: number;
  sessionId: string;
  superadmin: boolean;
  superadmin_billing: boolean;
  /** The project to act in; none if the user belongs to none, or not to the one that was asked for. */
  project: ActingProject | undefined;
};

export type ActingProject = { id: number; platform_id: number; role: Role };

/** A caller who was admitted to act in a project. */
export type ProjectCaller = Caller & { project: ActingProject };

/**
 * Who holds a token, and in which project they act: the chosen one, or their default. One round trip, by keys. A session
 * that was revoked, or whose user was deactivated, is nobody's.
 */
export async function findCaller(
  em: EntityManager,
  { userId, sessionId }: Claims,
  chosenProjectId: number | undefined,
): Promise<Caller | undefined> {
  const chosen = sql`${chosenProjectId ?? null}::int`;
  const [found] = await query(
    em,
    sql<FoundCaller>`
      select u.id, u.superadmin, u.superadmin_billing, p.id as project_id, p.platform_id, p.role
      from sessions s
      join users u on u.id = s.user_id and u.is_active
      left join lateral (
        select p.id, p.platform_id, case when u.superadmin then 'owner' else m.role end as role
        from (
          select ${chosen} as id where ${chosen} is not null
          union all
          select project_id from members where user_id = u.id and ${chosen} is null
          union all
          select u.default_project_id where ${chosen} is null
        ) candidate
        join projects p on p.id = candidate.id and p.is_active
        left join members m on m.project_id = p.id and m.user_id = u.id
        where m.user_id is not null or u.superadmin
        order by coalesce(p.id = u.default_project_id, false) desc, p.id
        limit 1
      ) p on true
      where s.id = ${sessionId}::uuid and s.user_id = ${userId} and s.revoked_at is null and s.expires_at > now()`,
  );
  if (!found) return undefined;

  const { project_id, platform_id, role, ...user } = found;
  const project = project_id === null ? undefined : { id: project_id, platform_id, role };
  return { ...user, sessionId, project };
}

type FoundCaller = Pick<Caller, 'id' | 'superadmin' | 'superadmin_billing'> & {
  project_id: number | null;
  platform_id: number;
  role: Role;
};

/** Lets the caller pass, or says why not. */
export function admit(caller: Caller | undefined, access: Access): void {
  if (access === 'anyone') return;
  if (!caller) throw unauthorized('Sign in first, and send the token as "Authorization: Bearer …".');
  if (access === 'signedIn') return;
  if (access === 'superadmin') {
    if (!caller.superadmin) throw forbidden('Only a superadmin may do this.');
    return;
  }

  if (!caller.project)
    throw forbidden('You belong to no such project. Choose one of yours with the X-Project-Id header.');
  if (ROLES.indexOf(caller.project.role) < ROLES.indexOf(access)) {
    throw forbidden(`This takes the role ${access}; yours in this project is ${caller.project.role}.`);
  }
}
