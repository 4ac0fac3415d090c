import { type RawBuilder, sql } from 'kysely';
import { forbidden, invalid } from '../../../shared/errors.ts';
import type { EventData } from '../../../shared/event.ts';
import type { Role } from '../../../shared/user.ts';
import type { ValueOf } from '../../database/prepared.ts';
import { type Db, live, oneRow, query, queryOne } from '../../database/query.ts';
import { actingProject, mustHaveRole, rolesFrom } from '../access/access.ts';
import type { ProjectCaller, ProjectContext } from '../access/context.ts';
import { bound, type Permit, permitOf, roleIn } from '../access/permission.ts';
import { MOST_IDS, platformOf } from '../event/event.ts';
import type { NamedProject } from './row.ts';

/** What a card refers to: its group, its tag and its owner. */

/** Throws for references of a card to unknown rows or to another project, and locks group and tag against deletion. */
export async function checkReferences({ db, caller }: ProjectContext, project: NamedProject, references: References) {
  const { group_id = null, tag_id = null, owner_id = null } = references;
  const found = await queryOne(
    db,
    sql<Referenced>`
      with ${groupAndTag(sql`${group_id}::int`, sql`${tag_id}::int`)}, ${ownerAsMember(sql`${owner_id}::int`, sql`${project.id}`)}
      select (select project_id from group_found) as group_project_id, (select project_id from tag_found) as tag_project_id,
        exists (select from owner_found) as is_owner_member`,
  );
  mustReferToProject(caller, project, references, found);
}

/** The references of many cards; `project_id` is that of an existing card. */
export type ReferencesOfRow = References & { row: number; project_id?: number };

/** What they lead to, and the project of each card with the caller's role there. */
export type ReferencedByRow = Referenced & {
  row: number;
  acting_id: number | null;
  acting_role: Role | null;
  platform_id: number | null;
};

/**
 * Finds the references of many cards, and locks what it finds in the order of the ids. Each project and its role are looked up
 * once, however many cards are in it.
 */
export async function findReferences(
  { db, caller }: ProjectContext,
  rows: ReferencesOfRow[],
): Promise<(row: number) => ReferencedByRow> {
  const permit = bound(permitOf(caller));
  const project = projectOf(sql`group_found.project_id`, sql`tag_found.project_id`, permit);
  const found = await query(
    db,
    sql<ReferencedByRow>`
      with sent as materialized (
        select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
          as sent (row int, project_id int, group_id int, tag_id int, owner_id int)
      ), group_found as (
        select found.* from (select distinct group_id as id from sent order by group_id) as wanted cross join lateral (
          select id, project_id from groups where id = wanted.id and not is_master and ${live()} for share) as found
      ), tag_found as (
        select found.* from (select distinct tag_id as id from sent order by tag_id) as wanted cross join lateral (
          select id, project_id from tags where id = wanted.id and ${live()} for share) as found
      ), named as materialized (
        select sent.row, sent.owner_id, group_found.project_id as group_project_id, tag_found.project_id as tag_project_id,
          coalesce(sent.project_id, ${project}) as acting_id
        from sent left join group_found on group_found.id = sent.group_id left join tag_found on tag_found.id = sent.tag_id
      ), acting as materialized (
        select place.id, ${roleIn('place.id', permit)} as role, ${platformOf(sql`place.id`)} as platform_id
        from (select distinct acting_id as id from named) as place
      ), owner_found as (
        select owner.* from (
          select distinct owner_id, acting_id from named where owner_id is not null order by owner_id, acting_id
        ) as wanted cross join lateral (
          select m.user_id, m.project_id from members m join users u on u.id = m.user_id and u.is_active
          where m.user_id = wanted.owner_id and m.project_id = wanted.acting_id for key share of m
        ) as owner
      )
      select named.row, acting.id as acting_id, acting.role as acting_role, acting.platform_id, group_project_id, tag_project_id,
        owner_found.user_id is not null as is_owner_member
      from named left join acting on acting.id = named.acting_id
        left join owner_found on owner_found.user_id = named.owner_id and owner_found.project_id = named.acting_id`,
  );
  const byRow = Map.groupBy(found, ({ row }) => row);
  return (row) => oneRow(byRow.get(row) ?? []);
}

/** The project of a new card: that of its group, else of its tag, else the default one; only the selected one, if there is. */
export const projectOf = (ofGroup: SqlId, ofTag: SqlId, value: ValueOf<Permit>) => sql<number | null>`
  case when ${value('is_chosen')}::boolean then ${value('known_project_id')}::int
    else coalesce(${ofGroup}, ${ofTag}, ${value('known_project_id')}::int) end`;

/** Common table expressions that find group and tag with their projects, and lock them. Without an id, tables aren't read. */
export const groupAndTag = (group: SqlId, tag: SqlId, also = sql<boolean>`true`) => sql`
  group_found as (
    select project_id from groups where ${group} is not null and id = ${group} and not is_master and ${live()} and ${also} for share
  ), tag_found as (
    select project_id from tags where ${tag} is not null and id = ${tag} and ${live()} and ${also} for share
  )`;

/** A common table expression with the owner, if they are an active member of the project; locks them against removal. */
export const ownerAsMember = (owner: SqlId, project: SqlId) => sql`
  owner_found as (
    select m.user_id from members m join users u on u.id = m.user_id and u.is_active
    where ${owner} is not null and m.user_id = ${owner} and m.project_id = ${project} for key share of m
  )`;
type SqlId = RawBuilder<unknown>;

export type References = { group_id?: number | null; tag_id?: number | null; owner_id?: number | null };

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
  const unknown = {
    ...(group_id != null && group_project_id === null && { group_id: 'does not exist' }),
    ...(tag_id != null && tag_project_id === null && { tag_id: 'does not exist' }),
    // Only in a project of the caller: who is a member of another must not leak.
    ...(owner_id != null && isPermitted && !is_owner_member && { owner_id: 'is not a member of this project' }),
  };
  if (Object.keys(unknown).length > 0) throw invalid(unknown, 'unknown_reference');

  const isOther = (id: number | null) => id !== null && (id !== project.id || project.role === null);
  if (isOther(group_project_id)) throw forbidden(notInProject('group_id'), 'other_project');
  if (isOther(tag_project_id)) throw forbidden(notInProject('tag_id'), 'other_project');
  if (project.id === null || project.role === null) {
    actingProject(caller);
    return;
  }
  mustHaveRole(caller.neededRole, project.role);
  const field = group_project_id !== null ? 'group_id' : tag_project_id !== null ? 'tag_id' : undefined;
  caller.actedIn?.push({ project_id: project.id, ...(field && { refusal: notInProject(field) }) });
}

const notInProject = (field: string) => `${field} is not in this project.`;

/**
 * Takes a tag or an owner that goes from its cards. Returns what the event says of these cards, and the ids of all of them: as the
 * text of an array, null without any, since there may be very many.
 */
export async function clearCards(
  db: Db,
  column: 'tag_id' | 'owner_id',
  which: RawBuilder<unknown>,
): Promise<{ ids: string | null; data: Pick<EventData, 'ids' | 'count'> }> {
  return queryOne(
    db,
    sql<{ ids: string | null; data: Pick<EventData, 'ids' | 'count'> }>`
      with cleared as (
        update cards set ${sql.ref(column)} = null, updated_at = now() where ${which} returning id
      )
      select array_agg(id)::text as ids, case when count(*) = 0 then '{}' when count(*) > ${sql.lit(MOST_IDS)} then jsonb_build_object('count', count(*))
        else jsonb_build_object('ids', jsonb_agg(id order by id)) end as data
      from cleared`,
  );
}
