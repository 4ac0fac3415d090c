import { type RawBuilder, sql } from 'kysely';
import { Event as EventModel, type EventType } from '../../../shared/event.ts';
import { type DeliveryStatus, TEST_TYPE } from '../../../shared/webhook.ts';
import { type Db, query, transact } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';
import type { Log } from '../../runtime/log.ts';
import type { Outcome, Outgoing } from '../../security/outgoing.ts';
import type { SecretBox } from '../../security/secretBox.ts';
import { writeEvents } from './event.ts';
import { type EventRow, type Place, readEvents } from './feed.ts';
import { signedHeaders } from './webhookSignature.ts';

/** What a delivery needs. */
export type Delivering = {
  db: Db;
  secretBox: SecretBox;
  log: Log;
  outgoing: Pick<Outgoing, 'post'>;
  /** The database's clock, or that of a test. */
  now?: RawBuilder<Date>;
  random?: () => number;
  /** Ends calls that are under way when the node stops. */
  signal?: AbortSignal;
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
const LEASE = sql`interval '1 minute'`;

/** The maximum number of events before other receivers have their turn. */
const EVENTS_AT_ONCE = 50;

/** Kept for each webhook. */
const MOST_DELIVERIES = 1000;

/**
 * Claims webhooks that have events to get, or a test. No transaction stays open while they are called.
 *
 * - `horizon`: the end of the feed.
 * - one part for each lane: the webhooks that have waited longest, without those that another node is claiming.
 */
export async function claimWebhooks(
  { db, now = NOW }: Pick<Delivering, 'db' | 'now'>,
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

/** Sends what a claimed webhook is due to get. */
export async function deliver(delivering: Delivering, webhook: Claimed): Promise<void> {
  if (webhook.lane === 'tested') await deliverTest(delivering, webhook);
  else await deliverEvents(delivering, webhook);
}

/** Sends the next events in their order, up to the first failure. */
async function deliverEvents(delivering: Delivering, webhook: Claimed): Promise<void> {
  const place: Place = { transaction: webhook.transaction, id: webhook.event, seconds: 0 };
  const read = { place, types: webhook.types, limit: EVENTS_AT_ONCE };
  const { events, places, next } = await readEvents(delivering.db, read, [webhook.project_id]);
  let at = place;
  let { failures } = webhook;
  for (const [index, event] of events.entries()) {
    const outcome = await send(delivering, webhook, messageOf(event), event.id);
    // The node is stopping: another one sends it again.
    if (delivering.signal?.aborted) break;
    const attempt: Attempt = { event_id: event.id, type: event.type, attempt: failures + 1, outcome };
    if (outcome.error !== undefined) return recordFailure(delivering, webhook, at, attempt);
    const behind = places[index] as Place;
    if (!(await recordSuccess(delivering, webhook, { from: at, to: behind }, attempt))) return;
    at = behind;
    failures = 0;
  }
  await release(delivering, webhook, { from: at, to: delivering.signal?.aborted ? at : next });
}

/** The same as over REST: the model gives dates, which become ISO 8601. */
function messageOf(row: EventRow): string {
  const event = EventModel.parse(row);
  return JSON.stringify({ type: event.type, timestamp: event.created_at, data: event });
}

async function deliverTest(delivering: Delivering, webhook: Claimed): Promise<void> {
  const sentAt = new Date();
  const data = { webhook_id: webhook.id, project_id: webhook.project_id };
  const body = JSON.stringify({ type: TEST_TYPE, timestamp: sentAt, data });
  const outcome = await send(delivering, webhook, body, `test-${webhook.id}-${sentAt.getTime()}`);
  const attempt: Attempt = { event_id: null, type: TEST_TYPE, attempt: 1, outcome };
  await record(delivering, webhook, sql`true`, sql`test_requested_at = null, leased_until = null`, attempt);
}

async function send(
  { outgoing, secretBox, log, signal }: Delivering,
  { id, url, secret, previous_secret }: Claimed,
  body: string,
  messageId: string,
): Promise<Outcome> {
  const secrets = [secret, previous_secret].flatMap((sealed) =>
    sealed === null ? [] : (secretBox.open(sealed, id, 'webhook') ?? []),
  );
  if (secrets.length === 0) {
    log.error(`The secret of webhook ${id} can't be read: see JWT_PREVIOUS_SECRETS.`);
    return { status: undefined, error: 'Its secret can not be read: rotate it.', milliseconds: 0 };
  }
  return outgoing.post(url, signedHeaders(messageId, new Date(), body, secrets), body, signal);
}

type Attempt = { event_id: string | null; type: string; attempt: number; outcome: Outcome };
type Move = { from: Place; to: Place };

/** Whether the webhook is still where this node has left it: neither changed by an owner, nor taken over by another node. */
const isAt = ({ version }: Claimed, { transaction, id }: Place) =>
  sql`(w.after_transaction, w.after_event) = (${transaction}::xid8, ${id}::bigint) and w.is_active
    and w.updated_at = ${version}::timestamptz and exists (select from projects p where p.id = w.project_id and p.is_active)`;

const moveTo = ({ transaction, id }: Place) =>
  sql`after_transaction = ${transaction}::xid8, after_event = ${id}::bigint`;

/** Whether the webhook has moved behind the event; otherwise it is elsewhere by now. */
async function recordSuccess(delivering: Delivering, webhook: Claimed, { from, to }: Move, attempt: Attempt) {
  const { now = NOW } = delivering;
  const changes = sql`${moveTo(to)}, failures = 0, first_failed_at = null, leased_until = ${now} + ${LEASE}`;
  return (await record(delivering, webhook, isAt(webhook, from), changes, attempt)) !== undefined;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long after each failure the next attempt follows, as Standard Webhooks recommends it; later on once a day. */
const RETRY_SECONDS = [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, DAY];

/** Up to a tenth longer, so that the receivers on a host that was down are not all called at once. */
export const retrySeconds = (failures: number, random: () => number = Math.random): number =>
  (RETRY_SECONDS[failures - 1] ?? DAY) * (1 + random() / 10);

/** Switches a webhook off after so long without a success. */
const LONGEST_FAILURE = sql`interval '5 days'`;
const GONE = 410;

async function recordFailure(delivering: Delivering, webhook: Claimed, at: Place, attempt: Attempt): Promise<void> {
  const { now = NOW, random } = delivering;
  const reason =
    attempt.outcome.status === GONE
      ? sql`'gone'`
      : sql`case when ${now} - w.first_failed_at >= ${LONGEST_FAILURE} then 'failing' end`;
  const pause = sql`make_interval(secs => ${retrySeconds(attempt.attempt, random)})`;
  const changes = sql`failures = w.failures + 1, first_failed_at = coalesce(w.first_failed_at, ${now}),
    next_attempt_at = ${now} + ${pause}, leased_until = null, disabled_reason = ${reason}, is_active = ${reason} is null`;
  await transact(delivering.db, async (db) => {
    const found = await record({ ...delivering, db }, webhook, isAt(webhook, at), changes, attempt);
    if (!found?.disabled_reason) return;
    const event = {
      type: 'webhook.disabled',
      subject_id: webhook.id,
      data: { reason: found.disabled_reason },
    } as const;
    await writeEvents({ ...BY_THE_SERVICE, db }, [{ ...event, project_id: webhook.project_id }]);
  });
}

const BY_THE_SERVICE = {
  caller: undefined,
  origin: { surface: 'service', requestId: null },
  address: 'service',
} as const;

/** How many attempts of this process were delivered and failed. */
export const deliveryCounts = new Map<DeliveryStatus, number>();

/**
 * Changes a webhook after an attempt, and notes the attempt.
 *
 * - `trimmed`: the oldest attempt beyond those that are kept.
 */
async function record(
  { db, now = NOW }: Delivering,
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

/** Ends the lease behind everything that was read. Others that wait have their turn first. */
async function release({ db, now = NOW }: Delivering, webhook: Claimed, { from, to }: Move): Promise<void> {
  await query(
    db,
    sql`update webhooks w set ${moveTo(to)}, leased_until = null, next_attempt_at = ${now} where w.id = ${webhook.id} and ${isAt(webhook, from)}`,
  );
}
