import { type RawBuilder, sql } from 'kysely';
import type { DeliveryStatus } from '../../../shared/webhook.ts';
import { query, transact } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';
import type { Outcome } from '../../security/outgoing.ts';
import { writeEvents } from './event.ts';
import type { Place } from './feed.ts';
import { type Claimed, LEASE, type WebhookStore } from './webhookClaim.ts';

/** An attempt to send an event, or a test. */
export type Attempt = { event_id: string | null; type: string; attempt: number; outcome: Outcome };

type Recording = WebhookStore & { random?: () => number };
type Move = { from: Place; to: Place };

/** How many attempts of this process were delivered and failed. */
export const deliveryCounts = new Map<DeliveryStatus, number>();

/** Whether the webhook has moved behind the event; otherwise it is elsewhere by now. */
export async function recordSuccess(recording: Recording, webhook: Claimed, { from, to }: Move, attempt: Attempt) {
  const { now = NOW } = recording;
  const changes = sql`${moveTo(to)}, failures = 0, first_failed_at = null, leased_until = ${now} + ${LEASE}`;
  return (await record(recording, webhook, isAt(webhook, from), changes, attempt)) !== undefined;
}

/** Sets the time of the next attempt, or switches the webhook off. */
export async function recordFailure(
  recording: Recording,
  webhook: Claimed,
  at: Place,
  attempt: Attempt,
): Promise<void> {
  const { now = NOW, random } = recording;
  const reason =
    attempt.outcome.status === GONE
      ? sql`'gone'`
      : sql`case when ${now} - w.first_failed_at >= ${LONGEST_FAILURE} then 'failing' end`;
  const pause = sql`make_interval(secs => ${retrySeconds(attempt.attempt, random)})`;
  const changes = sql`failures = w.failures + 1, first_failed_at = coalesce(w.first_failed_at, ${now}),
    next_attempt_at = ${now} + ${pause}, leased_until = null, disabled_reason = ${reason}, is_active = ${reason} is null`;
  await transact(recording.db, async (db) => {
    const found = await record({ ...recording, db }, webhook, isAt(webhook, at), changes, attempt);
    if (!found?.disabled_reason) return;
    const event = {
      type: 'webhook.disabled',
      subject_id: webhook.id,
      data: { reason: found.disabled_reason },
    } as const;
    await writeEvents({ ...BY_THE_SERVICE, db }, [{ ...event, project_id: webhook.project_id }]);
  });
}

/** Switches a webhook off after so long without a success. */
const LONGEST_FAILURE = sql`interval '5 days'`;
const GONE = 410;

const BY_THE_SERVICE = {
  caller: undefined,
  origin: { surface: 'service', requestId: null },
  address: 'service',
} as const;

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long after each failure the next attempt follows, as Standard Webhooks recommends it; later on once a day. */
const RETRY_SECONDS = [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, DAY];

/** Up to a tenth longer, so that the receivers on a host that was down are not all called at once. */
export const retrySeconds = (failures: number, random: () => number = Math.random): number =>
  (RETRY_SECONDS[failures - 1] ?? DAY) * (1 + random() / 10);

/** Ends a test, whatever its outcome. */
export async function recordTest(recording: Recording, webhook: Claimed, attempt: Attempt): Promise<void> {
  await record(recording, webhook, sql`true`, sql`test_requested_at = null, leased_until = null`, attempt);
}

/** Ends the lease behind everything that was read. Others that wait have their turn first. */
export async function release({ db, now = NOW }: Recording, webhook: Claimed, { from, to }: Move): Promise<void> {
  await query(
    db,
    sql`update webhooks w set ${moveTo(to)}, leased_until = null, next_attempt_at = ${now} where w.id = ${webhook.id} and ${isAt(webhook, from)}`,
  );
}

/** Whether the webhook is still where this node has left it: neither changed by an owner, nor taken over by another node. */
const isAt = ({ version }: Claimed, { transaction, id }: Place) =>
  sql`(w.after_transaction, w.after_event) = (${transaction}::xid8, ${id}::bigint) and w.is_active
    and w.updated_at = ${version}::timestamptz and exists (select from projects p where p.id = w.project_id and p.is_active)`;

const moveTo = ({ transaction, id }: Place) =>
  sql`after_transaction = ${transaction}::xid8, after_event = ${id}::bigint`;

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
        update webhooks w set deliveries = w.deliveries + 1, ${changes} where w.id = ${id} and ${condition}
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
