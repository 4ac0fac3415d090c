import { sql } from 'kysely';
import type { z } from 'zod';
import type { CardCreate, CreatedCard } from '../../shared/card.ts';
import { behind, query } from '../database/query.ts';
import type { ProjectContext } from '../trpc.ts';
import { mustBeOfProject } from './reference.ts';

/** Creates a card at the end of its group and of the project. One statement: what it refers to is checked on the way. */
export async function createCard({ em, caller }: ProjectContext, input: CardCreate) {
  const { project } = caller;
  const [found] = await query(
    em,
    sql<CardRow & { group_project_id: number | null; tag_project_id: number | null; owner_project_id: number | null }>`
      with sent as (
        select * from jsonb_to_record(${JSON.stringify(input)}::jsonb) as sent (title text, description text,
          group_id int, status text, owner_id int, tag_id int, due_date timestamptz, priority text)
      ), group_found as (
        select g.project_id from groups g, sent
        where g.id = sent.group_id and not g.is_master and g.deleted_at is null
        for share of g
      ), tag_found as (
        select t.project_id from tags t, sent where t.id = sent.tag_id and t.deleted_at is null
        for share of t
      ), owner_found as (
        select coalesce(m.project_id, ${NO_PROJECT}) as project_id
        from sent join users u on u.id = sent.owner_id and u.is_active
        left join members m on m.user_id = u.id and m.project_id = ${project.id}
      ), created as (
        insert into cards (project_id, platform_id, group_id, owner_id, tag_id, title, description, status, priority,
          due_date, created_by, position, sort_order)
        select ${project.id}, ${project.platform_id}, sent.group_id, sent.owner_id, sent.tag_id, sent.title,
          sent.description, coalesce(sent.status, 'open'), coalesce(sent.priority, 'normal'), sent.due_date, ${caller.id},
          ${behind(sql`coalesce(
            (select max(position) from cards where group_id = sent.group_id and deleted_at is null),
            (select max(position) from cards where project_id = ${project.id} and group_id is null
              and sent.group_id is null and deleted_at is null))`)},
          ${behind(sql`select max(sort_order) from cards where project_id = ${project.id} and deleted_at is null`)}
        from sent
        where (sent.group_id is null or exists (select from group_found where project_id = ${project.id}))
          and (sent.tag_id is null or exists (select from tag_found where project_id = ${project.id}))
          and (sent.owner_id is null or exists (select from owner_found where project_id = ${project.id}))
        returning *
      )
      select c.*, ${DERIVED},
        (select project_id from group_found) as group_project_id,
        (select project_id from tag_found) as tag_project_id,
        (select project_id from owner_found) as owner_project_id
      from sent left join created c on true`,
  );
  const { group_project_id, tag_project_id, owner_project_id, ...card } = found!;
  mustBeOfProject(project, [
    { field: 'group_id', id: input.group_id, project_id: group_project_id },
    { field: 'tag_id', id: input.tag_id, project_id: tag_project_id },
    { field: 'owner_id', id: input.owner_id, project_id: owner_project_id },
  ]);

  return { card };
}

type CardRow = z.input<typeof CreatedCard>;

/** Of a user who exists, but is no member. */
const NO_PROJECT = 0;

/** What a card's answer holds beyond its columns; the card is called `c`. */
const DERIVED = sql`
  coalesce(c.due_date < now() and c.status <> 'closed', false) as is_overdue,
  case when c.tour_key is null then 'regular' else 'tour' end as card_type`;
