import { sql } from 'kysely';
import {
  type CARD_TYPES,
  Card,
  type CardCreate,
  type CardMove,
  type CardSnooze,
  type CardUpdate,
} from '../../shared/card.ts';
import type { ActingProject, ProjectContext } from '../context.ts';
import { prepared } from '../database/prepared.ts';
import { type Db, nextPosition, query, transact } from '../database/query.ts';
import type { RowChanges } from '../database/tables.ts';
import { cleanDescription } from './description.ts';
import { mustBeOfProject } from './reference.ts';
import { changeRow, deleteRow, findRow, lockProject, type Selected, selectionOf, unlessNull } from './row.ts';

/** Due before now, and not closed. */
export const IS_OVERDUE = sql<boolean>`coalesce(due_date < now() and status <> 'closed', false)`;

/** What answers hold of a card. */
export const CARD_COLUMNS = Card.keyof().options.map((field) =>
  field === 'is_overdue' ? IS_OVERDUE.as(field) : field,
);
export type CardRow = Selected<'cards', typeof CARD_COLUMNS>;

const CARD_TYPE = sql<(typeof CARD_TYPES)[number]>`case when tour_key is null then 'regular' else 'tour' end`;
const CREATED_CARD_COLUMNS = [...CARD_COLUMNS, CARD_TYPE.as('card_type')];

/** Creates a card at the end of its group and of the project. */
export async function createCard({ db, caller }: ProjectContext, input: CardCreate) {
  const { project } = caller;
  const sent = JSON.stringify({ ...input, description: await cleanDescription(input.description) });
  const values = { sent, user_id: caller.id, project_id: project.id, platform_id: project.platform_id };
  const [found] = await insertCard(db, values);
  const { group_project_id, tag_project_id, owner_project_id, ...card } = found!;
  mustReferTo(project, input, { group_project_id, tag_project_id, owner_project_id });

  return { card };
}

/** One statement: what the card refers to is checked on the way, and nothing is inserted unless all of it is of the project. */
const insertCard = prepared<
  { sent: string; user_id: number; project_id: number; platform_id: number },
  Selected<'cards', typeof CREATED_CARD_COLUMNS> & ReferencedProjects
>(
  (value) => sql`
    with sent as (
      select * from jsonb_to_record(${value('sent')}::jsonb) as sent (title text, description text,
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
      left join members m on m.user_id = u.id and m.project_id = ${value('project_id')}
    ), created as (
      insert into cards (project_id, platform_id, group_id, owner_id, tag_id, title, description, status, priority,
        due_date, created_by, position, sort_order)
      select ${value('project_id')}, ${value('platform_id')}, sent.group_id, sent.owner_id, sent.tag_id, sent.title,
        sent.description, coalesce(sent.status, 'open'), coalesce(sent.priority, 'normal'), sent.due_date, ${value('user_id')},
        ${nextPosition(sql`coalesce(
          (select max(position) from cards where group_id = sent.group_id and deleted_at is null),
          (select max(position) from cards where project_id = ${value('project_id')} and group_id is null
            and sent.group_id is null and deleted_at is null))`)},
        ${nextPosition(sql`select max(sort_order) from cards where project_id = ${value('project_id')} and deleted_at is null`)}
      from sent
      where (sent.group_id is null or exists (select from group_found where project_id = ${value('project_id')}))
        and (sent.tag_id is null or exists (select from tag_found where project_id = ${value('project_id')}))
        and (sent.owner_id is null or exists (select from owner_found where project_id = ${value('project_id')}))
      returning ${selectionOf(CREATED_CARD_COLUMNS)}
    )
    select created.*,
      (select project_id from group_found) as group_project_id,
      (select project_id from tag_found) as tag_project_id,
      (select project_id from owner_found) as owner_project_id
    from sent left join created on true`,
);

/** One card. */
export async function getCard(context: ProjectContext, { id }: { id: number }) {
  return { card: await findRow(context, 'cards', id, CARD_COLUMNS) };
}

/** Changes what was sent of a card. */
export async function updateCard(context: ProjectContext, { id, ...sent }: CardUpdate) {
  const { title, status, priority, is_active, owner_id, tag_id, due_date, short_description } = sent;
  const changes: RowChanges<'cards'> = {
    description: await cleanDescription(sent.description),
    short_description,
    owner_id,
    tag_id,
    due_date,
    ...unlessNull<'cards'>({ title, status, priority, is_active }),
  };
  await findRow(context, 'cards', id);

  return transact(context.db, async (db) => {
    await checkReferences(db, context.caller.project, { owner_id, tag_id });
    return { card: await changeRow({ ...context, db }, 'cards', id, changes, CARD_COLUMNS) };
  });
}

/** Puts a card at a place in a group, or outside any; the cards there make room, and are counted from 1 again. */
export async function moveCard(context: ProjectContext, { id, group_id, position }: CardMove) {
  const { project } = context.caller;
  await findRow(context, 'cards', id);

  return transact(context.db, async (db) => {
    await lockProject(db, project);
    await checkReferences(db, project, { group_id });
    await changeRow({ ...context, db }, 'cards', id, { group_id }, ['id', 'project_id']);
    await query(
      db,
      sql`
        with other as (
          select id, 2 * row_number() over (order by position, id) as place from cards
          where project_id = ${project.id} and group_id is not distinct from ${group_id}::int and id <> ${id} and deleted_at is null
        ), placed as (
          select id, row_number() over (order by place) as position
          from (select id, place from other union all select ${id}::int, ${position == null ? null : 2 * position - 1}::bigint) as every
        )
        update cards set position = placed.position from placed
        where cards.id = placed.id and cards.position <> placed.position`,
    );
    return getCard({ ...context, db }, { id });
  });
}

/** Puts a card off until a moment, or ends that. */
export async function snoozeCard(context: ProjectContext, { id, until }: CardSnooze) {
  return { card: await changeRow(context, 'cards', id, { snoozed_until: until ?? null }, CARD_COLUMNS) };
}

/** Deletes a card; its comments stay with it, out of sight. */
export async function deleteCard(context: ProjectContext, { id }: { id: number }) {
  await deleteRow(context, 'cards', id);
}

/** Dismisses, for the caller, every tour card of the project that is not dismissed yet. */
export async function dismissTourCards({ db, caller }: ProjectContext) {
  const dismissed = await query(
    db,
    sql`
      insert into tour_dismissals (user_id, card_id)
      select ${caller.id}, c.id from cards c
      where c.project_id = ${caller.project.id} and c.tour_key is not null and c.deleted_at is null
        and not exists (select from tour_dismissals d where d.user_id = ${caller.id} and d.card_id = c.id)
      on conflict do nothing returning card_id`,
  );
  return { dismissed_count: dismissed.length };
}

/** Refuses what is unknown or of another project, and keeps the rest from being deleted meanwhile. */
async function checkReferences(db: Db, project: ActingProject, { group_id, tag_id, owner_id }: References) {
  const [found] = await query(
    db,
    sql<ReferencedProjects>`
      with group_found as (
        select project_id from groups where id = ${group_id ?? null}::int and not is_master and deleted_at is null for share
      ), tag_found as (
        select project_id from tags where id = ${tag_id ?? null}::int and deleted_at is null for share
      )
      select (select project_id from group_found) as group_project_id,
        (select project_id from tag_found) as tag_project_id,
        (select coalesce(m.project_id, ${NO_PROJECT}) from users u
          left join members m on m.user_id = u.id and m.project_id = ${project.id}
          where u.id = ${owner_id ?? null}::int and u.is_active) as owner_project_id`,
  );
  mustReferTo(project, { group_id, tag_id, owner_id }, found!);
}

type References = { group_id?: number | null; tag_id?: number | null; owner_id?: number | null };

/** The project of what each reference names; null if it names nothing. */
type ReferencedProjects = Record<'group_project_id' | 'tag_project_id' | 'owner_project_id', number | null>;

function mustReferTo(project: ActingProject, { group_id, tag_id, owner_id }: References, found: ReferencedProjects) {
  mustBeOfProject(project, [
    { field: 'group_id', id: group_id, project_id: found.group_project_id },
    { field: 'tag_id', id: tag_id, project_id: found.tag_project_id },
    { field: 'owner_id', id: owner_id, project_id: found.owner_project_id },
  ]);
}

/** Of a user who exists, but is no member. */
const NO_PROJECT = 0;
