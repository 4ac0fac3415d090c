import { type RawBuilder, sql } from 'kysely';
import type { EventData } from '../../../shared/event.ts';
import { type EventContext, eventPartsOf } from '../event/event.ts';

/** What happened to projects: by a run, or because of a master card. */
type OfTemplate = Pick<EventData, 'run_id' | 'card_id' | 'rollout_id'> & {
  type: 'template.applied' | 'template.removed' | 'template.rolled_out' | 'template.rolled_back';
  board_id: number;
  /** Who is behind it, if the service does it later. */
  by_user_id?: number | null;
};

/**
 * The part of a statement that writes one event for each project in these rows, which have `project_id`, `platform_id`, and the
 * number of rows that were changed in the project (`count`).
 */
export function projectEventParts(
  context: EventContext,
  { type, board_id, by_user_id = null, ...data }: OfTemplate,
  changed: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const rows = sql`
    select ${type} as type, platform_id, project_id, ${board_id}::int as subject_id,
      ${JSON.stringify(data)}::jsonb || jsonb_build_object('count', count) as data, ${by_user_id}::int as by_user_id
    from (
      select project_id, platform_id, sum(count)::int as count from (${changed}) as changed group by project_id, platform_id
      order by project_id
    ) as projects`;
  return eventPartsOf(context, rows, type);
}
