import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import {
  type CARD_TYPES,
  Card,
  CardCreate,
  type CardDelete,
  type CardSnooze,
  type CardUpdate,
  CreatedCard,
} from '../../../shared/card.ts';
import type { Role } from '../../../shared/user.ts';
import { jsonOf } from '../../database/jsonRow.ts';
import { live, nextPosition, oneRow, transact } from '../../database/query.ts';
import type { Selected } from '../../database/selection.ts';
import type { RowChanges } from '../../database/tables.ts';
import { VERSION, withVersion } from '../../database/version.ts';
import { asJsonText, type DateFields } from '../../runtime/jsonText.ts';
import { type Confirmed, confirming } from '../access/confirmation.ts';
import type { ProjectContext } from '../access/context.ts';
import { isEnough, type Permit, permitOf, roleIn } from '../access/permission.ts';
import { type Actor, actorOf, eventParts } from '../event/event.ts';
import {
  checkReferences,
  groupAndTag,
  mustReferToProject,
  ownerAsMember,
  projectOf,
  type Referenced,
} from './cardReference.ts';
import { changesIn, columnsOf, namesOf, newValues } from './columns.ts';
import { cleanDescription } from './description.ts';
import { restoredAs, restoreRow } from './restoration.ts';
import { changeRow, deleteRow, findRow } from './row.ts';
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

/** Creates a card at the end of its group and of the project: that of its group, else of its tag, else the default one. */
export async function createCard(context: ProjectContext, input: CardCreate) {
  const { caller } = context;
  const known_platform_id = caller.project?.platform_id ?? null;
  const sent = { ...input, ...sentDueDate(input) };
  const isAssigned = input.tag_id != null || input.owner_id != null;
  const insert = INSERTIONS[caller.superadmin ? 'audited' : 'plain'][isAssigned ? 'assigned' : 'unassigned'];
  const values = { ...sent, ...permitOf(caller), ...actorOf(context), known_platform_id };
  const found = oneRow(await insert(context, values));
  mustReferToProject(caller, { id: found.acting_id, role: found.acting_role }, input, found);

  const dates = sent.due_date === null ? DATES : DATES_WITH_DUE_DATE;
  return { card: asJsonText<z.output<typeof CreatedCard>>(found.card, dates), version: found.version };
}

/** The dates of a new card. */
const DATES: DateFields = { own: ['created_at', 'updated_at'] };
const DATES_WITH_DUE_DATE: DateFields = { own: ['due_date', ...DATES.own] };

/** The columns that are sent with a new card. */
export const CREATED_COLUMNS = columnsOf('cards', CardCreate);
export type CreatedColumns = Record<(typeof CREATED_COLUMNS)[number], unknown>;

/** As text, which pg would make more slowly. */
export function sentDueDate(sent: CardCreate) {
  const { due_date, is_due_at_midnight = null } = dueColumns(sent.due_date);
  return { due_date: due_date?.toISOString() ?? null, is_due_at_midnight };
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
 * - `group_found`, `tag_found`: lock group and tag against deletion, and give their projects.
 * - `named`: the id of the project to create the card in. Materialized, or each use of the id would look it up again.
 * - `acting`: that project, with the caller's role there; the known one isn't read again.
 * - `owner_found`: the owner, locked, if they are an active member of that project.
 * - `created`: the card as JSON, only if the role is high enough and every reference is in that project.
 * - `noted`: its event.
 *
 * Most cards have neither tag nor owner: PostgreSQL then plans without looking for them.
 */
const insertion = ({ hasAudit, isAssigned }: { hasAudit: boolean; isAssigned: boolean }) =>
  confirming<
    Permit & Actor & Partial<CreatedColumns> & { known_platform_id: number | null },
    Referenced & Confirmed & { card: string; version: string; acting_id: number | null; acting_role: Role | null }
  >((value, { first, isConfirmed }) => {
    const tag = isAssigned ? sql`${value('tag_id')}::int` : sql`null::int`;
    const owner = isAssigned ? sql`${value('owner_id')}::int` : sql`null::int`;
    return sql`
    with ${first}${groupAndTag(sql`${value('group_id')}::int`, tag, isConfirmed)},
    named as materialized (
      select g.project_id as group_project_id, t.project_id as tag_project_id,
        ${projectOf(sql`g.project_id`, sql`t.project_id`, value)} as id
      from (select) as one left join group_found g on true left join tag_found t on true
    ), acting as (
      select named.*, ${roleIn('named.id', value)} as role,
        case when named.id = ${value('known_project_id')}::int then ${value('known_platform_id')}::int
          else (select platform_id from projects where id = named.id) end as platform_id
      from named
    ), ${ownerAsMember(owner, sql`(select id from acting where ${isConfirmed})`)},
    created as (
      insert into cards (project_id, platform_id, ${namesOf(CREATED_COLUMNS)}, created_by, position, sort_order)
      select acting.id, acting.platform_id, ${newValues('cards', CREATED_COLUMNS, value)}, ${value('user_id')}::int,
        ${nextPosition(lastPosition(sql`${value('group_id')}::int`, sql`acting.id`))}, ${nextPosition(lastOrder(sql`acting.id`))}
      from acting
      where ${isConfirmed} and ${isEnough(sql`acting.role`, value)}
        and (${value('group_id')}::int is null or acting.id = group_project_id)
        and (${tag} is null or acting.id = tag_project_id)
        and (${owner} is null or exists (select from owner_found))
      returning ${jsonOf('cards', CreatedCard, { is_overdue: IS_OVERDUE, card_type: CARD_TYPE })} as card, ${VERSION}, id, project_id, platform_id, group_id
    ), ${eventParts(CREATED, value, hasAudit)}
    select created.card, created.version, acting.id as acting_id, acting.role as acting_role, group_project_id, tag_project_id,
      exists (select from owner_found) as is_owner_member, ${isConfirmed} as is_confirmed
    from acting left join created on true`;
  });

/** The last position in a group or, for null, outside groups; and the last one in the project. */
export const lastPosition = (group: RawBuilder<unknown>, project: RawBuilder<unknown>) => sql`coalesce(
  (select max(position) from cards where group_id = ${group} and ${live()}),
  (select max(position) from cards where project_id = ${project} and group_id is null and ${group} is null and ${live()}))`;
export const lastOrder = (project: RawBuilder<unknown>) =>
  sql`select max(sort_order) from cards where project_id = ${project} and ${live()}`;

/** The events of the cards in the part `created` of a statement. */
export const CREATED = sql`
  select 'card.created' as type, platform_id, project_id, id as subject_id, null::int as by_user_id,
    jsonb_build_object('group_id', group_id, 'version', 1) as data
  from created`;

const insertions = (hasAudit: boolean) => ({
  assigned: insertion({ hasAudit, isAssigned: true }),
  unassigned: insertion({ hasAudit, isAssigned: false }),
});
const INSERTIONS = { audited: insertions(true), plain: insertions(false) };

/** One card, and whether the caller dismissed it. */
export async function getCard(context: ProjectContext, { id }: { id: number }) {
  const is_dismissed = isDismissed('t', sql`${context.caller.id}`).as('is_dismissed');
  const { row: card } = await findRow(context, 'cards', id, [...CARD_COLUMNS, is_dismissed, VERSION]);
  return withVersion('card', card);
}

/** Changes the sent fields of a card. */
export async function updateCard(context: ProjectContext, { id, if_version, ...sent }: CardUpdate) {
  const { owner_id, tag_id } = sent;
  const { row, project } = await findRow(context, 'cards', id, ['master_card_id']);
  // A card is a copy from the start or never, so this can't change before the update.
  const description = row.master_card_id === null ? sent.description : await cleanDescription(context, sent);
  const changes = cardChanges({ ...sent, description });

  return transact(context.db, async (db) => {
    await checkReferences({ ...context, db }, project, { owner_id, tag_id });
    return withVersion('card', await changeRow({ ...context, db }, 'cards', id, changes, CARD_COLUMNS, { if_version }));
  });
}

/** The columns that an update changes; undefined ones are not changed. */
export const cardChanges = ({ due_date, ...sent }: Omit<CardUpdate, 'id' | 'if_version'>): RowChanges<'cards'> =>
  changesIn('cards', { ...sent, ...dueColumns(due_date) });

/** Snoozes a card, or ends snoozing. */
export async function snoozeCard(context: ProjectContext, { id, until, if_version }: CardSnooze) {
  const changes = { snoozed_until: until ?? null };
  return withVersion('card', await changeRow(context, 'cards', id, changes, CARD_COLUMNS, { if_version }));
}

/** Soft-deletes a card; its comments stay, hidden. */
export async function deleteCard(context: ProjectContext, { id, if_version }: CardDelete) {
  await deleteRow(context, 'cards', id, { if_version });
}

/** Restores a card. */
export async function restoreCard(context: ProjectContext, { id }: { id: number }) {
  return restoredAs('card', await restoreRow(context, 'cards', id, CARD_COLUMNS));
}
