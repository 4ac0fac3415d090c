import { type RawBuilder, sql } from 'kysely';
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
import { type Db, live, nextPosition, query, transact } from '../database/query.ts';
import type { RowChanges } from '../database/tables.ts';
import { cleanDescription } from './description.ts';
import { mustBeOfProject } from './reference.ts';
import { changeRow, deleteRow, findRow, lockProject, type Selected, selectionOf, withoutNulls } from './row.ts';

/** The due date has passed, and the card is not closed. */
export const IS_OVERDUE = sql<boolean>`coalesce(due_date < now() and status <> 'closed', false)`;

/** The columns of a card in answers. */
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
  mustReferToProject(project, input, { group_project_id, tag_project_id, owner_project_id });

  return { card };
}

/** One statement that also checks the references: it inserts nothing unless all of them are in the project. */
const insertCard = prepared<
  { sent: string; user_id: number; project_id: number; platform_id: number },
  Selected<'cards', typeof CREATED_CARD_COLUMNS> & ReferencedProjects
>(
  (value) => sql`
    with sent as (
      select * from jsonb_to_record(${value('sent')}::jsonb) as sent (title text, description text,
        group_id int, status text, owner_id int, tag_id int, due_date timestamptz, priority text)
    ), ${referenced(sql`(select group_id from sent)`, sql`(select tag_id from sent)`, sql`(select owner_id from sent)`, value('project_id'))},
    created as (
      insert into cards (project_id, platform_id, group_id, owner_id, tag_id, title, description, status, priority,
        due_date, created_by, position, sort_order)
      select ${value('project_id')}, ${value('platform_id')}, sent.group_id, sent.owner_id, sent.tag_id, sent.title,
        sent.description, coalesce(sent.status, 'open'), coalesce(sent.priority, 'normal'), sent.due_date, ${value('user_id')},
        ${nextPosition(sql`coalesce(
          (select max(position) from cards where group_id = sent.group_id and ${live()}),
          (select max(position) from cards where project_id = ${value('project_id')} and group_id is null
            and sent.group_id is null and ${live()}))`)},
        ${nextPosition(sql`select max(sort_order) from cards where project_id = ${value('project_id')} and ${live()}`)}
      from sent
      where (sent.group_id is null or exists (select from group_found where project_id = ${value('project_id')}))
        and (sent.tag_id is null or exists (select from tag_found where project_id = ${value('project_id')}))
        and (sent.owner_id is null or exists (select from owner_found where project_id = ${value('project_id')}))
      returning ${selectionOf(CREATED_CARD_COLUMNS)}
    )
    select created.*, ${REFERENCED_PROJECTS} from sent left join created on true`,
);

/** One card. */
export async function getCard(context: ProjectContext, { id }: { id: number }) {
  return { card: await findRow(context, 'cards', id, CARD_COLUMNS) };
}

/** Changes the sent fields of a card. */
export async function updateCard(context: ProjectContext, { id, ...sent }: CardUpdate) {
  const { title, status, priority, is_active, owner_id, tag_id, due_date, short_description } = sent;
  const changes: RowChanges<'cards'> = {
    description: await cleanDescription(sent.description),
    short_description,
    owner_id,
    tag_id,
    due_date,
    ...withoutNulls<'cards'>({ title, status, priority, is_active }),
  };
  await findRow(context, 'cards', id);

  return transact(context.db, async (db) => {
    await checkReferences(db, context.caller.project, { owner_id, tag_id });
    return { card: await changeRow({ ...context, db }, 'cards', id, changes, CARD_COLUMNS) };
  });
}

/** Moves a card to a position in a group or outside any, and renumbers the cards there from 1. */
export async function moveCard(context: ProjectContext, { id, group_id, position }: CardMove) {
  const { project } = context.caller;
  await findRow(context, 'cards', id);

  return transact(context.db, async (db) => {
    await lockProject(db, project);
    await checkReferences(db, project, { group_id });
    await changeRow({ ...context, db }, 'cards', id, { group_id }, ['id', 'project_id']);
    await query(
      db,
      // Other cards get even places, so that the moved one fits between two of them.
      sql`
        with other as (
          select id, 2 * row_number() over (order by position, id) as place from cards
          where project_id = ${project.id} and group_id is not distinct from ${group_id}::int and id <> ${id} and ${live()}
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

/** Snoozes a card, or ends snoozing. */
export async function snoozeCard(context: ProjectContext, { id, until }: CardSnooze) {
  return { card: await changeRow(context, 'cards', id, { snoozed_until: until ?? null }, CARD_COLUMNS) };
}

/** Soft-deletes a card; its comments stay, hidden. */
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
      where c.project_id = ${caller.project.id} and c.tour_key is not null and ${live('c')}
        and not exists (select from tour_dismissals d where d.user_id = ${caller.id} and d.card_id = c.id)
      on conflict do nothing returning card_id`,
  );
  return { dismissed_count: dismissed.length };
}

/** Refuses references to unknown rows or to another project, and locks the others against deletion. */
async function checkReferences(db: Db, project: ActingProject, references: References) {
  const { group_id = null, tag_id = null, owner_id = null } = references;
  const [found] = await query(
    db,
    sql<ReferencedProjects>`
      with ${referenced(sql`${group_id}::int`, sql`${tag_id}::int`, sql`${owner_id}::int`, sql`${project.id}`)}
      select ${REFERENCED_PROJECTS}`,
  );
  mustReferToProject(project, references, found!);
}

/** Common table expressions that find the project of each reference, and lock group and tag. */
const referenced = (group: SqlId, tag: SqlId, owner: SqlId, project: SqlId) => sql`
  group_found as (
    select project_id from groups where id = ${group} and not is_master and ${live()} for share
  ), tag_found as (
    select project_id from tags where id = ${tag} and ${live()} for share
  ), owner_found as (
    select coalesce(m.project_id, ${NO_PROJECT}) as project_id from users u
    left join members m on m.user_id = u.id and m.project_id = ${project}
    where u.id = ${owner} and u.is_active
  )`;
type SqlId = RawBuilder<unknown>;

const REFERENCED_PROJECTS = sql`
  (select project_id from group_found) as group_project_id,
  (select project_id from tag_found) as tag_project_id,
  (select project_id from owner_found) as owner_project_id`;

type References = { group_id?: number | null; tag_id?: number | null; owner_id?: number | null };

/** The project of each referenced row; null if it does not exist. */
type ReferencedProjects = Record<'group_project_id' | 'tag_project_id' | 'owner_project_id', number | null>;

function mustReferToProject(
  project: ActingProject,
  { group_id, tag_id, owner_id }: References,
  found: ReferencedProjects,
) {
  mustBeOfProject(project, [
    { field: 'group_id', id: group_id, project_id: found.group_project_id },
    { field: 'tag_id', id: tag_id, project_id: found.tag_project_id },
    { field: 'owner_id', id: owner_id, project_id: found.owner_project_id },
  ]);
}

/** The project id for an owner who exists but is not a member. */
const NO_PROJECT = sql.lit(0);
