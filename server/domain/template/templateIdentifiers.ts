import { sql } from 'kysely';
import { lockProjects } from '../../database/projectLock.ts';
import { anyOf, live, query } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';
import type { SignedInContext } from '../access/context.ts';
import { projectEventParts } from './templateEvent.ts';
import { amongTargets, isNotPinned } from './templateFields.ts';
import type { Part } from './templateSource.ts';

/**
 * A live copy has the `unique_identifier` of its template, which is unique in a project. If the template was deleted and a new
 * one uses its identifier, the new one adopts the live copy instead of adding a second.
 */

/** A master card `m` of which a group `g` in a project has no copy. */
const IS_MISSING = sql`m.group_id = g.master_group_id and m.is_addable and ${isNotPinned('g')}
  and not exists (select from card_copy c where c.project_id = g.project_id and c.master_card_id = m.id)`;

/** A missing copy to add, since there is none to adopt. `not in` uses a hash table, which is mostly empty. */
export const IS_ADDED = sql`${IS_MISSING} and (g.project_id, m.id) not in (select project_id, template_id from adopted_card)`;

/** Live copies of deleted master cards, where a copy of the one with the same identifier is missing. */
export const adoptedCards = (part: Part) => sql`
  select c.id, c.project_id, m.id as template_id, true as is_changed
  from (
    select * from cards c where c.${amongTargets(part)} and c.master_card_id = any(array(
      select id from cards where is_master and deleted_at is not null
        and unique_identifier = any(array(select unique_identifier from master_card)))) offset 0
  ) as c join master_card m on m.unique_identifier = c.unique_identifier
  join incomplete_group g on g.project_id = c.project_id and ${IS_MISSING}
  where ${live('c')}`;

/** Brings a new identifier to the live copies of a master card; copies of a deleted one that have it get another. */
export async function bringIdentifier(
  context: SignedInContext,
  { id, board_id }: { id: number; board_id: number },
  identifier: string,
): Promise<void> {
  const { db } = context;
  const isOutdated = sql<boolean>`master_card_id = ${id} and ${live()} and unique_identifier <> ${identifier}`;
  const copies = db.selectFrom('cards').select('project_id').where(isOutdated);
  const projects = await lockProjects(db, sql`id in ${copies}`);
  if (projects.length === 0) return;

  const renamed = await db
    .updateTable('cards')
    .set({ unique_identifier: sql<string>`gen_random_uuid()::text`, updated_at: NOW })
    .where('project_id', '=', anyOf(projects.map(({ id }) => id)))
    .where('unique_identifier', '=', identifier)
    .where('master_card_id', '<>', id)
    .where(live())
    .returning('id')
    .execute();
  const updated = db
    .updateTable('cards')
    .set({ unique_identifier: identifier, updated_at: NOW })
    .where(isOutdated)
    .returning(['project_id', 'platform_id']);
  const changed = sql`
    select *, 1 as count from updated union all
    select project_id, platform_id, 1 from cards where id = ${anyOf(renamed.map(({ id }) => id))}`;
  const note = projectEventParts(context, { type: 'template.applied', board_id, card_id: id }, changed);
  await query(db, sql`with updated as (${updated}), ${note} select`);
}
