import { sql } from 'kysely';
import { type Db, plannedEachTime, query, withShortTimeout } from '../../database/query.ts';
import { nextEvents } from './webhookClaim.ts';

/** Events are delivered to the first two. The service has switched off disabled ones, an owner those that are off. */
const STATES = ['working', 'failing', 'disabled', 'off'] as const;
export type WebhookState = (typeof STATES)[number];

/** `behind`: webhooks with events that wait. */
export type Backlog = { state: WebhookState; webhooks: number; behind: number; events: number; oldestSeconds: number };

/** The most events of one webhook that are read: of more, only these count. */
export const MOST_COUNTED = 100;

/** Counts webhooks and the events that they have not got yet. */
export async function measureBacklog(db: Db): Promise<Backlog[]> {
  const rows = await query(
    db,
    withShortTimeout(
      plannedEachTime(sql<Backlog>`
      select state, count(*)::int as webhooks, count(oldest)::int as behind, coalesce(sum(events), 0)::int as events,
        greatest(0, coalesce(extract(epoch from now() - min(oldest)), 0))::float8 as "oldestSeconds"
      from (
        select w.*, case when disabled_reason is not null then 'disabled' when not w.is_active then 'off'
          when failures > 0 then 'failing' else 'working' end as state
        from webhooks w join projects p on p.id = w.project_id and p.is_active
      ) as w left join lateral (
        select count(*) as events, min(n.created_at) as oldest
        from (${nextEvents(sql`e.type, e.created_at`, MOST_COUNTED)}) as n where w.types is null or n.type = any(w.types)
      ) as waiting on w.is_active
      group by state`),
    ),
  );
  const none = { webhooks: 0, behind: 0, events: 0, oldestSeconds: 0 };
  return STATES.map((state) => rows.find((row) => row.state === state) ?? { state, ...none });
}
