import { type RawBuilder, sql } from 'kysely';
import type { EventData } from '../../../shared/event.ts';
import type { SignedInContext } from '../access/context.ts';
import { eventPartsOf } from '../event/event.ts';

/** What happened to projects: by a run, or because of a master card. */
type OfTemplate = Pick<EventData, 'run_id' | 'card_id'> & {
  type: 'template.applied' | 'template.removed';
  board_id: number;
};

/**
 * The part of a statement that writes one event for each project in these rows, which have `project_id`, `platform_id`, and the
 * number of rows that were changed in the project (`count`).
 */
export function projectEventParts(
  context: SignedInContext,
  { type, board_id, ...data }: OfTemplate,
  changed: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const rows = sql`
    select ${type} as type, platform_id, project_id, ${board_id}::int as subject_id,
      ${JSON.stringify(data)}::jsonb || jsonb_build_object('count', count) as data, null::int as by_user_id
    from (
      select project_id, platform_id, sum(count)::int as count from (${changed}) as changed group by project_id, platform_id
      order by project_id
    ) as projects`;
  return eventPartsOf(context, rows, type);
}
