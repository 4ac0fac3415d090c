import { type RawBuilder, sql } from 'kysely';
import type { EventType } from '../../../shared/event.ts';
import { query } from '../../database/query.ts';
import { accountOf, actingProject } from '../access/access.ts';
import type { ProjectContext } from '../access/context.ts';
import { eventPartsOf } from '../event/event.ts';
import { isLiveCard } from './row.ts';

/** Whether a user dismissed a tour card. With another `tour_key` since, it is a new step of the tour. */
export const isDismissed = (card: string, userId: RawBuilder<unknown>) => sql<boolean>`
  (${sql.ref(`${card}.tour_key`)} is not null and exists (
    select from tour_dismissals d where d.card_id = ${sql.ref(`${card}.id`)} and d.user_id = ${userId}::int
      and ${isDismissedBy(card, 'd')}))`;

/** Whether a dismissal of this card counts: it is of the tour that the card belongs to now. */
export const isDismissedBy = (card: string, dismissal: string) => {
  const tour = sql.ref(`${card}.tour_key`);
  return sql<boolean>`coalesce(${sql.ref(`${dismissal}.tour_key`)}, ${tour}) = ${tour}`;
};

/** Cards that boards and lists show to a user: all but the tour cards that they dismissed. */
export const isShown = (card: string, userId: RawBuilder<unknown>) => sql<boolean>`(not ${isDismissed(card, userId)})`;

/** The ids of the tour cards that a user dismissed: few, so that others can be found in an index alone. Each is looked up by its id. */
export const dismissedCards = (userId: RawBuilder<unknown>) => sql`
  select k.id from tour_dismissals own cross join lateral (
    select k.id from cards k where k.id = own.card_id and ${isDismissedBy('k', 'own')} offset 0) as k
  where own.user_id = ${userId}::int`;

/** Dismisses, for the caller, every tour card that is not dismissed yet. */
export async function dismissTourCards(context: ProjectContext) {
  const { db, caller } = context;
  const user_id = accountOf(caller);
  const dismissed = await query(
    db,
    sql`
      with dismissed as (insert into tour_dismissals (user_id, card_id, tour_key)
      select ${user_id}::int, c.id, c.tour_key from cards c
      where c.project_id in ${projectsOf(caller)} and c.tour_key is not null and ${isLiveCard('c')}
        and ${isShown('c', sql`${user_id}`)}
      order by c.id
      on conflict (user_id, card_id) do update set tour_key = excluded.tour_key, dismissed_at = now()
        where tour_dismissals.tour_key is distinct from excluded.tour_key
      returning card_id), ${tourEventParts(context, 'tour.dismissed', sql`dismissed`)}
      select card_id from dismissed`,
  );
  return { dismissed_count: dismissed.length };
}

/** Shows all tour cards to the caller again. */
export async function restartTours(context: ProjectContext) {
  const { db, caller } = context;
  const user_id = accountOf(caller);
  const restored = await query(
    db,
    sql`
      with restored as (
        delete from tour_dismissals d using cards c
        where d.user_id = ${user_id} and c.id = d.card_id and c.project_id in ${projectsOf(caller)} returning d.card_id
      ), ${tourEventParts(context, 'tour.restarted', sql`restored`)}
      select card_id from restored`,
  );
  return { restored_count: restored.length };
}

/** The part of a statement that writes an event for each project of these cards. */
function tourEventParts(context: ProjectContext, type: EventType, cards: RawBuilder<unknown>): RawBuilder<unknown> {
  const rows = sql`
    select ${sql.lit(type)} as type, c.platform_id, c.project_id, null::int as subject_id, null::int as by_user_id,
      jsonb_build_object('count', count(*)) as data
    from ${cards} as changed join cards c on c.id = changed.card_id group by c.project_id, c.platform_id`;
  return eventPartsOf(context, rows, type);
}

/** The selected project; else all active ones of the caller, and their default one, where a superadmin may not be a member. */
function projectsOf(caller: ProjectContext['caller']): RawBuilder<number> {
  const { id } = actingProject(caller);
  if (caller.isProjectChosen) return sql`(${id}::int)`;
  return sql`(
    select ${id}::int union
    select m.project_id from members m join projects p on p.id = m.project_id and p.is_active where m.user_id = ${caller.id}::int)`;
}
