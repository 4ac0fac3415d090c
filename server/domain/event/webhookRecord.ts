import { type RawBuilder, sql } from 'kysely';
import type { DeliveryStatus } from '../../../shared/webhook.ts';
import { query, transact } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';
import type { Outcome } from '../../security/outgoing.ts';
import { BY_THE_SERVICE, writeEvents } from './event.ts';
import type { FeedPlace } from './feed.ts';
import type { Claimed } from './webhookClaim.ts';
import { isHeld, type WebhookStore } from './webhookLease.ts';

/** An attempt to send an event, or a test. */
export type Attempt = { event_id: string | null; type: string; attempt: number; outcome: Outcome };

type Recording = WebhookStore & { random?: () => number };
type Move = { from: FeedPlace; to: FeedPlace };

/** How many attempts of this process were delivered and failed. */
export const deliveryCounts = new Map<DeliveryStatus, number>();

/** Moves the webhook behind the event. Returns false if it was changed, or taken over by another process meanwhile. */
export async function recordSuccess(recording: Recording, webhook: Claimed, { from, to }: Move, attempt: Attempt) {
  const changes = sql`${moveTo(to)}, failures = 0, first_failed_at = null`;
  return (await record(recording, webhook, isAt(recording, webhook, from), changes, attempt)) !== undefined;
}

/**
 * Sets the time of the next attempt, or switches the webhook off, and ends the lease. Returns why it was switched off, and
 * undefined if the webhook was changed, or taken over by another process meanwhile.
 */
export async function recordFailure(
  recording: Recording,
  webhook: Claimed,
  at: FeedPlace,
  attempt: Attempt,
): Promise<{ disabled_reason: string | null } | undefined> {
  const { now = NOW, random } = recording;
  const reason =
    attempt.outcome.status === GONE
      ? sql`'gone'`
      : sql`case when ${now} - w.first_failed_at >= ${LONGEST_FAILURE} then 'failing' end`;
  const pause = sql`make_interval(secs => ${retrySeconds(attempt.attempt, random)})`;
  const changes = sql`failures = w.failures + 1, first_failed_at = coalesce(w.first_failed_at, ${now}),
    next_attempt_at = ${now} + ${pause}, leased_until = null, disabled_reason = ${reason}, is_active = ${reason} is null`;
  return transact(recording.db, async (db) => {
    const found = await record({ ...recording, db }, webhook, isAt(recording, webhook, at), changes, attempt);
    if (!found?.disabled_reason) return found;
    const event = {
      type: 'webhook.disabled',
      subject_id: webhook.id,
      data: { reason: found.disabled_reason },
    } as const;
    await writeEvents({ ...BY_THE_SERVICE, db }, [{ ...event, project_id: webhook.project_id }]);
    return found;
  });
}

/** Switches a webhook off after so long without a success. */
const LONGEST_FAILURE = sql`interval '5 days'`;
const GONE = 410;

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long after each failure the next attempt follows: soon, since later events wait for it; in the end once a day. */
const RETRY_SECONDS = [
  ...[5, 15, 30],
  ...[1, 2, 5, 15, 30].map((minutes) => minutes * MINUTE),
  ...[2, 5, 10, 14, 20].map((hours) => hours * HOUR),
];

/** Up to a tenth longer, so that the receivers on a host that was down are not all called at once. */
export const retrySeconds = (failures: number, random: () => number = Math.random): number =>
  (RETRY_SECONDS[failures - 1] ?? DAY) * (1 + random() / 10);

/** Ends a test, or an event that was sent again, whatever its outcome. What was asked for meanwhile follows. */
export async function recordAside(recording: Recording, webhook: Claimed, attempt: Attempt): Promise<void> {
  const { now = NOW } = recording;
  const isOwn = sql`coalesce(w.test_requested_at = ${webhook.test}::timestamptz, false)`;
  const changes = sql`resend_events = case when ${isOwn} then nullif(w.resend_events[2:], '{}') else w.resend_events end,
    test_requested_at = case when not ${isOwn} then w.test_requested_at when cardinality(w.resend_events) > 1 then ${now} end`;
  await record(recording, webhook, sql`true`, changes, attempt);
}

/**
 * Ends the lease behind everything that was read. Others that wait have their turn first. Returns false if the webhook was
 * changed, or taken over by another process meanwhile.
 */
export async function release(recording: Recording, webhook: Claimed, { from, to }: Move): Promise<boolean> {
  const { db, now = NOW } = recording;
  const released = await query(
    db,
    sql`
      update webhooks w set ${moveTo(to)}, leased_until = null, next_attempt_at = ${now}
      where w.id = ${webhook.id} and ${isAt(recording, webhook, from)} returning w.id`,
  );
  return released.length > 0;
}

/** Whether the webhook is still where this process has left it: neither changed by an owner, nor taken over. */
const isAt = (store: WebhookStore, { version }: Claimed, { transaction, id }: FeedPlace) =>
  sql`${isHeld(store)} and (w.after_transaction, w.after_event) = (${transaction}::xid8, ${id}::bigint) and w.is_active
    and w.updated_at = ${version}::timestamptz and exists (select from projects p where p.id = w.project_id and p.is_active)`;

const moveTo = ({ transaction, id }: FeedPlace) =>
  sql`after_transaction = ${transaction}::xid8, after_event = ${id}::bigint`;

/** One message that took long counts at once, a slow one in between does not. */
const paceAfter = (milliseconds: number) =>
  sql`pace_milliseconds = (coalesce(w.pace_milliseconds, ${milliseconds}::int) * 3 + ${milliseconds}::int) / 4`;

/** Kept for each webhook. */
const MOST_DELIVERIES = 1000;

/**
 * Changes a webhook after an attempt, and notes the attempt.
 *
 * - `trimmed`: the oldest attempt beyond those that are kept.
 */
async function record(
  { db, now = NOW }: Recording,
  { id }: Claimed,
  condition: RawBuilder<unknown>,
  changes: RawBuilder<unknown>,
  { event_id, type, attempt, outcome }: Attempt,
) {
  const { status = null, error = null, milliseconds } = outcome;
  const result: DeliveryStatus = error === null ? 'delivered' : 'failed';
  deliveryCounts.set(result, (deliveryCounts.get(result) ?? 0) + 1);
  const [found] = await query(
    db,
    sql<{ disabled_reason: string | null }>`
      with changed as (
        update webhooks w set deliveries = w.deliveries + 1, ${paceAfter(milliseconds)}, ${changes} where w.id = ${id} and ${condition}
        returning w.id, w.deliveries, w.disabled_reason
      ), trimmed as (
        delete from webhook_deliveries d using changed
        where d.webhook_id = changed.id and d.number <= changed.deliveries - ${sql.lit(MOST_DELIVERIES)}
      ), noted as (
        insert into webhook_deliveries
          (webhook_id, number, event_id, type, attempt, status, response_status, milliseconds, error, created_at)
        select id, deliveries, ${event_id}::bigint, ${type}::text, ${attempt}::int, ${result}::text,
          ${status}::int, ${milliseconds}::int, ${error}::text, ${now} from changed
      )
      select disabled_reason from changed`,
  );
  return found;
}
