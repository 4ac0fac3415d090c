import { sql } from 'kysely';
import { type CARD_TYPES, Card, type CardCreate, type CardSnooze, type CardUpdate } from '../../../shared/card.ts';
import type { Role } from '../../../shared/user.ts';
import { prepared } from '../../database/prepared.ts';
import { live, nextPosition, oneRow, transact } from '../../database/query.ts';
import type { RowChanges } from '../../database/tables.ts';
import type { ProjectContext } from '../access/context.ts';
import { isEnough, type Permit, permitOf, roleIn } from '../access/permission.ts';
import { changeRow, deleteRow, findRow, type Selected, selectionOf, withoutNulls } from '../rows/row.ts';
import {
  checkReferences,
  groupAndTag,
  mustReferToProject,
  ownerAsMember,
  REFERENCED,
  type Referenced,
} from './cardReference.ts';
import { cleanDescription } from './description.ts';
import { isDismissed } from './tour.ts';

/** The due date has passed, and the card is not closed. Without a time (midnight UTC), the whole day must have passed. */
export const IS_OVERDUE = sql<boolean>`coalesce(due_date < now() and status <> 'closed' and (is_due_at_midnight
  or due_date <= now() - interval '24 hours' or due_date <> date_trunc('day', due_date, 'UTC')), false)`;

/** The columns of a card in responses. */
export const CARD_COLUMNS = Card.keyof().options.map((field) =>
  field === 'is_overdue' ? IS_OVERDUE.as(field) : field,
);
export type CardRow = Selected<'cards', typeof CARD_COLUMNS>;

const CARD_TYPE = sql<(typeof CARD_TYPES)[number]>`case when tour_key is null then 'regular' else 'tour' end`;
const CREATED_CARD_COLUMNS = [...CARD_COLUMNS, CARD_TYPE.as('card_type')];

/** Creates a card at the end of its group and of the project: that of its group, else of its tag, else the default one. */
export async function createCard({ db, caller }: ProjectContext, input: CardCreate) {
  const sent = JSON.stringify({ ...input, ...dueColumns(input.due_date) });
  const found = oneRow(await insertCard(db, { sent, ...permitOf(caller) }));
  const { acting_id, acting_role, group_project_id, tag_project_id, is_owner_member, ...card } = found;
  mustReferToProject(caller, { id: acting_id, role: acting_role }, input, found);

  return { card };
}

/** The columns of a due date: a date is text, a time a `Date`. Undefined changes nothing. */
function dueColumns(due: CardCreate['due_date']): Pick<RowChanges<'cards'>, 'due_date' | 'is_due_at_midnight'> {
  if (due === undefined) return {};
  if (!(due instanceof Date)) return { due_date: due === null ? null : new Date(due), is_due_at_midnight: false };
  return { due_date: due, is_due_at_midnight: due.getTime() % DAY_MILLISECONDS === 0 };
}
const DAY_MILLISECONDS = 24 * 60 * 60_000;

/**
 * One statement that also checks role and references: it inserts nothing unless all of them are right.
 *
 * - `sent`: the input as a row.
 * - `group_found`, `tag_found`: lock group and tag against deletion, and give their projects.
 * - `acting`: the project to create the card in, with the caller's role there.
 * - `owner_found`: the owner, locked, if they are an active member of that project.
 * - `created`: the card, only if the role is high enough and every reference is in that project.
 */
const insertCard = prepared<
  Permit & { sent: string },
  Selected<'cards', typeof CREATED_CARD_COLUMNS> & Referenced & { acting_id: number | null; acting_role: Role | null }
>(
  (value) => sql`
    with sent as (
      select * from jsonb_to_record(${value('sent')}::jsonb) as sent (title text, description text,
        group_id int, status text, owner_id int, tag_id int, due_date timestamptz, is_due_at_midnight boolean, priority text)
    ), ${groupAndTag(sql`(select group_id from sent)`, sql`(select tag_id from sent)`)},
    acting as (
      select p.id, p.platform_id, ${roleIn('p.id', value)} as role from projects p
      where p.id = case when ${value('is_chosen')}::boolean then ${value('known_project_id')}::int else coalesce(
        (select project_id from group_found), (select project_id from tag_found), ${value('known_project_id')}::int) end
    ), ${ownerAsMember(sql`(select owner_id from sent)`, sql`(select id from acting)`)},
    created as (
      insert into cards (project_id, platform_id, group_id, owner_id, tag_id, title, description, status, priority,
        due_date, is_due_at_midnight, created_by, position, sort_order)
      select acting.id, acting.platform_id, sent.group_id, sent.owner_id, sent.tag_id, sent.title,
        sent.description, coalesce(sent.status, 'open'), coalesce(sent.priority, 'normal'), sent.due_date,
        coalesce(sent.is_due_at_midnight, false), ${value('user_id')}::int,
        ${nextPosition(sql`coalesce(
          (select max(position) from cards where group_id = sent.group_id and ${live()}),
          (select max(position) from cards where project_id = acting.id and group_id is null
            and sent.group_id is null and ${live()}))`)},
        ${nextPosition(sql`select max(sort_order) from cards where project_id = acting.id and ${live()}`)}
      from sent cross join acting
      where ${isEnough(sql`acting.role`, value)}
        and (sent.group_id is null or exists (select from group_found where project_id = acting.id))
        and (sent.tag_id is null or exists (select from tag_found where project_id = acting.id))
        and (sent.owner_id is null or exists (select from owner_found))
      returning ${selectionOf(CREATED_CARD_COLUMNS)}
    )
    select created.*, acting.id as acting_id, acting.role as acting_role, ${REFERENCED}
    from sent left join acting on true left join created on true`,
);

/** One card, and whether the caller dismissed it. */
export async function getCard(context: ProjectContext, { id }: { id: number }) {
  const is_dismissed = isDismissed('t', sql`${context.caller.id}`).as('is_dismissed');
  const { row: card } = await findRow(context, 'cards', id, [...CARD_COLUMNS, is_dismissed]);
  return { card };
}

/** Changes the sent fields of a card. */
export async function updateCard(context: ProjectContext, { id, ...sent }: CardUpdate) {
  const { title, status, priority, is_active, sort_order, owner_id, tag_id, due_date, short_description } = sent;
  const { row, project } = await findRow(context, 'cards', id, ['master_card_id']);
  const changes: RowChanges<'cards'> = {
    // A card is a copy from the start or never, so this can't change before the update.
    description: row.master_card_id === null ? sent.description : await cleanDescription(context, sent),
    short_description,
    owner_id,
    tag_id,
    ...dueColumns(due_date),
    ...withoutNulls<'cards'>({ title, status, priority, is_active, sort_order }),
  };

  return transact(context.db, async (db) => {
    await checkReferences({ ...context, db }, project, { owner_id, tag_id });
    return { card: await changeRow({ ...context, db }, 'cards', id, changes, CARD_COLUMNS) };
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
