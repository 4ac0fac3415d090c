import { sql } from 'kysely';
import { TEST_TYPE } from '../../../shared/webhook.ts';
import type { Log } from '../../runtime/log.ts';
import type { Outcome, Outgoing } from '../../security/outgoing.ts';
import type { SecretBox } from '../../security/secretBox.ts';
import { type FeedPlace, readEvent, readEvents } from './feed.ts';
import type { Claimed } from './webhookClaim.ts';
import { endLease, type WebhookStore } from './webhookLease.ts';
import { messageOf, signedHeaders } from './webhookMessage.ts';
import { type Attempt, recordAside, recordFailure, recordSuccess, release } from './webhookRecord.ts';
import { pauseByService } from './webhookRight.ts';

/** What a delivery needs. */
export type Delivering = WebhookStore & {
  secretBox: SecretBox;
  log: Log;
  outgoing: Pick<Outgoing, 'post'>;
  random?: () => number;
  /** Ends calls that are under way when the node stops. */
  signal?: AbortSignal;
};

const EVENTS_AT_ONCE = 50;

/** After this time, other receivers have their turn. */
const TURN_MILLISECONDS = 3000;

/** Sends what a claimed webhook is due to get. */
export async function deliver(delivering: Delivering, webhook: Claimed): Promise<void> {
  if (webhook.lane === 'tested') return (webhook.resend ? deliverAgain : deliverTest)(delivering, webhook);
  if (!webhook.may_receive) await pauseByService(delivering.db, delivering, sql`w.id = ${webhook.id}`);
  // If the webhook was changed, the next delivery begins with its new settings.
  else if (await deliverEvents(delivering, webhook)) return;
  await endLease(delivering, webhook.id);
}

/** Sends events in their order, until the turn ends or one fails. Returns false if the webhook was changed meanwhile. */
async function deliverEvents(delivering: Delivering, webhook: Claimed): Promise<boolean> {
  const { db, signal } = delivering;
  const { types, project_id } = webhook;
  const end = performance.now() + TURN_MILLISECONDS;
  const isOver = () => performance.now() >= end || signal?.aborted;
  // Where the webhook is in the database, and up to where events were read: unwanted ones are behind the last delivered one.
  let from: FeedPlace = { transaction: webhook.transaction, id: webhook.event, seconds: 0 };
  let to = from;
  let { failures } = webhook;
  for (let isDone = false; !isDone; ) {
    const { events, places, next, hasMore } = await readEvents(db, { place: to, types, limit: EVENTS_AT_ONCE }, [
      project_id,
    ]);
    for (const [index, event] of events.entries()) {
      const outcome = await send(delivering, webhook, messageOf(event), event.id);
      // The node is stopping: another one sends it again.
      if (signal?.aborted) return release(delivering, webhook, { from, to: from });
      const attempt: Attempt = { event_id: event.id, type: event.type, attempt: failures + 1, outcome };
      if (outcome.error !== undefined) return retryLater(delivering, webhook, from, attempt);
      to = places[index] as FeedPlace;
      if (!(await recordSuccess(delivering, webhook, { from, to }, attempt))) return false;
      from = to;
      if (failures > 0) delivering.log.warn(receiverOf(webhook), 'A webhook receiver works again.');
      failures = 0;
      if (isOver()) return release(delivering, webhook, { from, to });
    }
    to = next;
    isDone = !hasMore || isOver() === true;
  }
  return release(delivering, webhook, { from, to });
}

async function retryLater(delivering: Delivering, webhook: Claimed, at: FeedPlace, attempt: Attempt): Promise<boolean> {
  const recorded = await recordFailure(delivering, webhook, at, attempt);
  if (!recorded) return false;
  const { disabled_reason: reason } = recorded;
  const fields = { ...receiverOf(webhook), error: attempt.outcome.error };
  if (reason) delivering.log.warn({ ...fields, reason }, 'A webhook was switched off.');
  else if (attempt.attempt === 1) delivering.log.warn(fields, 'A webhook receiver fails: it is tried again.');
  return true;
}

/** For the log: without the path of the address, which may contain a secret. */
const receiverOf = ({ id, project_id, url }: Claimed) => ({
  webhook: id,
  project: project_id,
  host: URL.parse(url)?.host,
});

async function deliverTest(delivering: Delivering, webhook: Claimed): Promise<void> {
  const sentAt = new Date();
  const data = { webhook_id: webhook.id, project_id: webhook.project_id };
  const body = JSON.stringify({ type: TEST_TYPE, timestamp: sentAt, data });
  const outcome = await send(delivering, webhook, body, `test-${webhook.id}-${sentAt.getTime()}`);
  const attempt: Attempt = { event_id: null, type: TEST_TYPE, attempt: 1, outcome };
  await recordAside(delivering, webhook, attempt);
}

/** Sends one event again, with the same id, beside the others. */
async function deliverAgain(delivering: Delivering, webhook: Claimed): Promise<void> {
  const { resend: event_id, project_id, may_receive } = webhook;
  const event = await readEvent(delivering.db, event_id as string, project_id);
  const isSent = event && may_receive;
  const outcome = isSent ? await send(delivering, webhook, messageOf(event), event.id) : NOT_SENT;
  if (isSent && delivering.signal?.aborted) return;
  await recordAside(delivering, webhook, { event_id, type: event?.type ?? 'unknown', attempt: 1, outcome });
}

const NOT_SENT: Outcome = {
  status: undefined,
  error: 'The event is not kept any more, or the webhook is not active.',
  milliseconds: 0,
};

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
