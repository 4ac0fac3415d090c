import { type RawBuilder, sql } from 'kysely';
import { forbidden, invalid } from '../../../shared/errors.ts';
import type { Role } from '../../../shared/user.ts';
import { live, oneRow, query } from '../../database/query.ts';
import { actingProject, mustHaveRole, rolesFrom } from '../access/access.ts';
import type { ProjectCaller, ProjectContext } from '../access/context.ts';
import type { NamedProject } from '../rows/row.ts';

/** What a card refers to: its group, its tag and its owner. */

/** Throws for references of a card to unknown rows or to another project, and locks group and tag against deletion. */
export async function checkReferences({ db, caller }: ProjectContext, project: NamedProject, references: References) {
  const { group_id = null, tag_id = null, owner_id = null } = references;
  const found = await query(
    db,
    sql<Referenced>`
      with ${groupAndTag(sql`${group_id}::int`, sql`${tag_id}::int`)}, ${ownerAsMember(sql`${owner_id}::int`, sql`${project.id}`)}
      select ${REFERENCED}`,
  );
  mustReferToProject(caller, project, references, oneRow(found));
}

/** Common table expressions that find group and tag with their projects, and lock them. */
export const groupAndTag = (group: SqlId, tag: SqlId) => sql`
  group_found as (
    select project_id from groups where id = ${group} and not is_master and ${live()} for share
  ), tag_found as (
    select project_id from tags where id = ${tag} and ${live()} for share
  )`;

/** A common table expression with the owner, if they are an active member of the project; locks them against removal. */
export const ownerAsMember = (owner: SqlId, project: SqlId) => sql`
  owner_found as (
    select m.user_id from members m join users u on u.id = m.user_id and u.is_active
    where m.user_id = ${owner} and m.project_id = ${project} for key share of m
  )`;
type SqlId = RawBuilder<unknown>;

export const REFERENCED = sql`
  (select project_id from group_found) as group_project_id,
  (select project_id from tag_found) as tag_project_id,
  exists (select from owner_found) as is_owner_member`;

type References = { group_id?: number | null; tag_id?: number | null; owner_id?: number | null };

/** The projects of group and tag, null if they do not exist; and whether the owner is a member. */
export type Referenced = { group_project_id: number | null; tag_project_id: number | null; is_owner_member: boolean };

/** Throws unless group and tag exist and the owner is a member (422), and the caller may use them in this project (403). */
export function mustReferToProject(
  caller: ProjectCaller,
  project: { id: number | null; role: Role | null },
  { group_id, tag_id, owner_id }: References,
  { group_project_id, tag_project_id, is_owner_member }: Referenced,
): void {
  const isPermitted = project.role !== null && rolesFrom(caller.neededRole).includes(project.role);
  const unknown = [
    ...(group_id != null && group_project_id === null ? [['group_id', 'does not exist']] : []),
    ...(tag_id != null && tag_project_id === null ? [['tag_id', 'does not exist']] : []),
    // Only in a project of the caller: who is a member of another must not leak.
    ...(owner_id != null && isPermitted && !is_owner_member ? [['owner_id', 'is not a member of this project']] : []),
  ];
  if (unknown.length > 0) throw invalid(Object.fromEntries(unknown), 'unknown_reference');

  const named = { group_id: group_project_id, tag_id: tag_project_id };
  for (const [field, project_id] of Object.entries(named)) {
    if (project_id !== null && (project_id !== project.id || project.role === null))
      throw forbidden(notInProject(field), 'other_project');
  }
  if (project.id === null || project.role === null) {
    actingProject(caller);
    return;
  }
  mustHaveRole(caller.neededRole, project.role);
  const [field] = Object.entries(named).find(([, project_id]) => project_id !== null) ?? [];
  caller.actedIn?.push({ project_id: project.id, ...(field && { refusal: notInProject(field) }) });
}

const notInProject = (field: string) => `${field} is not in this project.`;
