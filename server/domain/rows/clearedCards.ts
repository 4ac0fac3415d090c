import { type RawBuilder, sql } from 'kysely';
import type { EventData } from '../../../shared/event.ts';
import { type Db, oneRow, query } from '../../database/query.ts';
import { MOST_IDS } from '../event/event.ts';

/**
 * Takes a tag or an owner that goes from its cards. Returns what the event says of these cards, and the ids of all of them: as the
 * text of an array, null without any, since there may be very many.
 */
export async function clearCards(
  db: Db,
  column: 'tag_id' | 'owner_id',
  which: RawBuilder<unknown>,
): Promise<{ ids: string | null; data: Pick<EventData, 'ids' | 'count'> }> {
  const found = await query(
    db,
    sql<{ ids: string | null; data: Pick<EventData, 'ids' | 'count'> }>`
      with cleared as (
        update cards set ${sql.ref(column)} = null, updated_at = now() where ${which} returning id
      )
      select array_agg(id)::text as ids, case when count(*) = 0 then '{}' when count(*) > ${sql.lit(MOST_IDS)} then jsonb_build_object('count', count(*))
        else jsonb_build_object('ids', jsonb_agg(id order by id)) end as data
      from cleared`,
  );
  return oneRow(found);
}
