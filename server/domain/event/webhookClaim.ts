import { type RawBuilder, sql } from 'kysely';
import type { EventType } from '../../../shared/event.ts';
import { type Db, query } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';

/** Where webhooks are stored, and the clock for their attempts. */
export type WebhookStore = {
  db: Db;
  /** The database's clock, or that of a test. */
  now?: RawBuilder<Date>;
};

/** How many receivers of each kind a node calls at once. Failing ones, which often take long, never take the places of others. */
export const AT_ONCE = { healthy: 20, failing: 10, tested: 4 };
export type Lane = keyof typeof AT_ONCE;

/** A webhook that this node delivers to until its lease ends. */
export type Claimed = {
  lane: Lane;
  id: number;
  project_id: number;
  url: string;
  types: EventType[] | null;
  secret: string;
  previous_secret: string | null;
  failures: number;
  transaction: string;
  event: string;
  /** When an owner last changed it: a delivery ends with the next change. */
  version: string;
};

/** Longer than the longest call. Each delivery renews it. */
export const LEASE = sql`interval '1 minute'`;

/**
 * Claims webhooks that have events to get, or a test. No transaction stays open while they are called.
 *
 * - `horizon`: the end of the feed.
 * - one part for each lane: the webhooks that have waited longest, without those that another node is claiming.
 */
export async function claimWebhooks(
  { db, now = NOW }: WebhookStore,
  limits: Record<Lane, number> = AT_ONCE,
): Promise<Claimed[]> {
  const some = (lane: Lane, isDue: RawBuilder<unknown>, by: RawBuilder<unknown>) => sql`
    select w.id, ${sql.lit(lane)} as lane from webhooks w join projects p on p.id = w.project_id and p.is_active cross join horizon
    where ${isDue} and (w.leased_until is null or w.leased_until < ${now})
    order by ${by} limit ${limits[lane]} for update of w skip locked`;
  const hasEvents = sql`w.is_active and w.next_attempt_at <= ${now} and w.test_requested_at is null and exists (
    select from events e where e.project_id = w.project_id
      and (e.transaction_id, e.id) > (w.after_transaction, w.after_event) and e.transaction_id < horizon.xmin)`;
  return query(
    db,
    sql<Claimed>`
      with horizon as materialized (select pg_snapshot_xmin(pg_current_snapshot()) as xmin
      ), healthy as (${some('healthy', sql`w.failures = 0 and ${hasEvents}`, sql`w.next_attempt_at`)}
      ), failing as (${some('failing', sql`w.failures > 0 and ${hasEvents}`, sql`w.next_attempt_at`)}
      ), tested as (${some('tested', sql`w.test_requested_at is not null`, sql`w.test_requested_at`)}
      )
      update webhooks w set leased_until = ${now} + ${LEASE}
      from (select * from healthy union all select * from failing union all select * from tested) as claimed
      where w.id = claimed.id
      returning claimed.lane, w.id, w.project_id, w.url, w.types, w.secret, w.failures,
        case when w.previous_expires_at > ${now} then w.previous_secret end as previous_secret,
        w.after_transaction::text as transaction, w.after_event::text as event, w.updated_at::text as version`,
  );
}
