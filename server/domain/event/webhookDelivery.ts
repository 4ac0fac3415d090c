import { Event as EventModel } from '../../../shared/event.ts';
import { TEST_TYPE } from '../../../shared/webhook.ts';
import type { Log } from '../../runtime/log.ts';
import type { Outcome, Outgoing } from '../../security/outgoing.ts';
import type { SecretBox } from '../../security/secretBox.ts';
import { type EventRow, type Place, readEvents } from './feed.ts';
import type { Claimed, WebhookStore } from './webhookClaim.ts';
import { type Attempt, recordFailure, recordSuccess, recordTest, release } from './webhookRecord.ts';
import { signedHeaders } from './webhookSignature.ts';

/** What a delivery needs. */
export type Delivering = WebhookStore & {
  secretBox: SecretBox;
  log: Log;
  outgoing: Pick<Outgoing, 'post'>;
  random?: () => number;
  /** Ends calls that are under way when the node stops. */
  signal?: AbortSignal;
};

/** The maximum number of events before other receivers have their turn. */
const EVENTS_AT_ONCE = 50;

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
  await recordTest(delivering, webhook, attempt);
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
