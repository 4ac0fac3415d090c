import { TRPCError } from '@trpc/server';
import { type RawBuilder, sql } from 'kysely';
import { forbidden, ofRows } from '../../../shared/errors.ts';
import { HIGHEST_ROLE, ROLES, type Role, rolesWith } from '../../../shared/user.ts';
import type { ValueOf } from '../../database/prepared.ts';
import { type Db, query } from '../../database/query.ts';
import { mustHaveRole, rolesFrom, withoutProject } from './access.ts';
import type { ActedIn, Caller, ProjectCaller } from './context.ts';

/**
 * A call acts in the project of the row that it names. Statements find out the caller's role there themselves, so that a call
 * needs no round trip for it.
 */

/** What statements need to know of the caller. */
export type Permit = {
  user_id: number | null;
  superadmin: boolean;
  /** The project of X-Project-Id, or the default one, with the role there. */
  known_project_id: number | null;
  known_role: Role | null;
  is_chosen: boolean;
  /** The roles that are high enough, as an array of PostgreSQL. */
  roles: string;
};

export const permitOf = ({ id, superadmin, project, isProjectChosen, neededRole }: ProjectCaller): Permit => ({
  user_id: id,
  superadmin,
  known_project_id: project?.id ?? null,
  known_role: project?.role ?? null,
  is_chosen: isProjectChosen,
  roles: ROLE_ARRAYS[neededRole],
});

const ROLE_ARRAYS = Object.fromEntries(ROLES.map((role) => [role, `{${rolesFrom(role)}}`])) as Record<Role, string>;

/** With the name of its table: a bare one would name a column of the tables that the condition reads. */
type Column = `${string}.${string}`;

/** Bound values for a statement that is not prepared. */
export const bound =
  <Values>(values: Values): ValueOf<Values> =>
  (name) =>
    sql`${values[name]}`;

/** The role of the caller in the project with this id; null if they may not act there. Reads tables only for other projects than the known one. */
export const roleIn = (project: Column, value: ValueOf<Permit>): RawBuilder<Role | null> => sql`
  case when ${sql.ref(project)} = ${value('known_project_id')}::int then ${value('known_role')}::text
    when not ${value('is_chosen')}::boolean then (
      select case when ${value('superadmin')}::boolean then ${sql.lit(HIGHEST_ROLE)} else their.role end from projects theirs
      left join members their on their.project_id = theirs.id and their.user_id = ${value('user_id')}::int
      where theirs.id = ${sql.ref(project)} and theirs.is_active) end`;

/** Whether a role is high enough; false for null. */
export const isEnough = (role: RawBuilder<unknown>, value: ValueOf<Permit>): RawBuilder<boolean> =>
  sql`coalesce(${role} = any(${value('roles')}::text[]), false)`;

/** Whether this row of `members` may manage its project. */
export const isManager = (member: string) =>
  sql<boolean>`${sql.ref(`${member}.role`)} in (${sql.join(rolesWith('manage').map((role) => sql.lit(role)))})`;

/** Whether the caller owns a project of the platform with this id, the selected project if one is; superadmins own all. */
export function ownsPlatform(platform: Column, caller: Caller): RawBuilder<boolean> {
  if (caller.isProjectChosen)
    return sql`coalesce(${sql.ref(platform)} = ${caller.project?.platform_id ?? null}::int, false)`;
  if (caller.superadmin) return sql`true`;
  return sql`exists (
    select from members own join projects theirs on theirs.id = own.project_id and theirs.is_active
    where own.user_id = ${caller.id} and ${isManager('own')} and theirs.platform_id = ${sql.ref(platform)})`;
}

/** Throws a 403 unless the role of the caller in the project of a row is high enough. */
export function mustBePermitted(
  { neededRole, actedIn }: ProjectCaller,
  { id, role }: { id: number; role: Role | null },
  message: string,
): void {
  if (role === null) throw forbidden(message, 'other_project');
  mustHaveRole(neededRole, role);
  actedIn?.push({ project_id: id, refusal: message });
}

/** Throws a 403 unless the caller owns a project of the platform of a theme. */
export function mustOwnPlatform(
  { actedIn }: Caller & Pick<ProjectCaller, 'actedIn'>,
  platform_id: number,
  isOwned: boolean,
): void {
  if (!isOwned) throw forbidden('This theme belongs to another platform.', 'other_platform');
  actedIn?.push({ platform_id });
}

/** Throws the 403 that the call would get if it was new, unless the caller may still act where it acted. */
export async function mustStillBePermitted(db: Db, caller: ProjectCaller, actedIn: ActedIn[]): Promise<void> {
  for (const place of actedIn) {
    if ('platform_id' in place) {
      const [found] = await query(
        db,
        sql<{ isOwned: boolean }>`
          select ${ownsPlatform('p.id', caller)} as "isOwned" from platforms p where p.id = ${place.platform_id}`,
      );
      mustOwnPlatform(caller, place.platform_id, found?.isOwned ?? false);
    } else {
      const role = await roleOf(db, caller, place.project_id);
      mustStillAct(caller, place, role);
    }
  }
}

type ActedInProject = Extract<ActedIn, { project_id: number }>;

function mustStillAct(
  caller: ProjectCaller,
  { project_id: id, refusal, row }: ActedInProject,
  role: Role | null,
): void {
  try {
    if (role === null && refusal === undefined) throw withoutProject();
    mustBePermitted(caller, { id, role }, refusal ?? '');
  } catch (error) {
    if (!row || !(error instanceof TRPCError)) throw error;
    throw ofRows(row.list, new Map([[row.at, error]]));
  }
}

async function roleOf(db: Db, caller: ProjectCaller, projectId: number): Promise<Role | null> {
  if (caller.project?.id === projectId) return caller.project.role;
  const role = roleIn('p.id', bound(permitOf(caller)));
  const [found] = await query(
    db,
    sql<{ role: Role | null }>`select ${role} as role from projects p where p.id = ${projectId}`,
  );
  return found?.role ?? null;
}
