import { isDeepStrictEqual } from 'node:util';
import { sql, type UpdateObject } from 'kysely';
import { badRequest, invalid, notFound } from '../../../shared/errors.ts';
import type { EventType } from '../../../shared/event.ts';
import {
  type DeliveryList,
  Webhook,
  type WebhookChoice,
  type WebhookCreate,
  WebhookDelivery,
  type WebhookList,
  type WebhookRedeliver,
  type WebhookUpdate,
} from '../../../shared/webhook.ts';
import { type Db, oneRow, query, transact } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import type { Tables } from '../../database/tables.ts';
import { daysBefore, NOW } from '../../database/timestamp.ts';
import { addressProblem } from '../../security/outgoing.ts';
import type { ProjectContext } from '../access/context.ts';
import { namedProject } from '../account/member.ts';
import { readPage } from '../rows/page.ts';
import { lockProject } from '../rows/row.ts';
import { writeEvents } from './event.ts';
import { latestPlace } from './feed.ts';
import { makeWebhookSecret } from './webhookSignature.ts';

const PLAIN_COLUMNS = Webhook.keyof().options.filter((column) => column !== 'next_attempt_at');
const COLUMNS = [
  ...PLAIN_COLUMNS,
  sql<Date | null>`case when failures > 0 and is_active then next_attempt_at end`.as('next_attempt_at'),
] as const;

const DELIVERY_COLUMNS = [
  ...WebhookDelivery.keyof().options.filter((column) => column !== 'event_id'),
  sql<string | null>`event_id::text`.as('event_id'),
] as const;

const MOST_WEBHOOKS = 20;

export const deliveryRemoval: Removal = {
  table: 'webhook_deliveries',
  due: (now) => sql`t.created_at < ${daysBefore(now, 7)}`,
  by: 'created_at',
};

/** Creates a webhook that gets the events from now on; returns its secret once. */
export async function createWebhook(context: ProjectContext, { url, types, ...named }: WebhookCreate) {
  const project_id = await namedProject(context, named);
  mustBeCallable(context, url);
  return transact(context.db, async (db) => {
    await mustHaveRoom(db, project_id);
    const { transaction, id: event } = await latestPlace(db);
    // Its id is needed to encrypt its secret.
    const { id } = oneRow(
      await query(db, sql<{ id: number }>`select nextval(pg_get_serial_sequence('webhooks', 'id'))::int as id`),
    );
    const secret = makeWebhookSecret();
    const webhook = await db
      .insertInto('webhooks')
      .values({
        id,
        project_id,
        url,
        types: sorted(types),
        secret: context.secretBox.seal(secret, id, 'webhook'),
        after_transaction: transaction,
        after_event: event,
        created_by: context.caller.id,
      })
      .returning(COLUMNS)
      .executeTakeFirstOrThrow();
    await note({ ...context, db }, 'webhook.created', webhook);
    return { webhook, secret };
  });
}

/** Throws a 400 at the cap. Locks the project, so that the count can't change meanwhile. */
async function mustHaveRoom(db: Db, project_id: number): Promise<void> {
  await lockProject(db, project_id);
  const { webhooks } = await db
    .selectFrom('webhooks')
    .select(sql<number>`count(*)::int`.as('webhooks'))
    .where('project_id', '=', project_id)
    .executeTakeFirstOrThrow();
  if (webhooks >= MOST_WEBHOOKS)
    throw badRequest(`A project has at most ${MOST_WEBHOOKS} webhooks. Delete some of them first.`, 'place_full');
}

/** The webhooks of a project. */
export async function listWebhooks(context: ProjectContext, { project_id, ...page }: WebhookList) {
  const webhooks = context.db
    .selectFrom('webhooks')
    .select(COLUMNS)
    .where('project_id', '=', await namedProject(context, { project_id }));
  return readPage('webhooks', webhooks, page);
}

/** Changes a webhook. With another address, or active again, it is tried at once. */
export async function updateWebhook(context: ProjectContext, { id, url, types, is_active }: WebhookUpdate) {
  await mustOwn(context, id);
  if (url != null) mustBeCallable(context, url);
  const sent = {
    url: url ?? undefined,
    types: types === undefined ? undefined : sorted(types),
    is_active: is_active ?? undefined,
  };
  return transact(context.db, async (db) => {
    const before = await db
      .selectFrom('webhooks')
      .select(COLUMNS)
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirstOrThrow(unknownWebhook);
    const fields = (['url', 'types', 'is_active'] as const).filter(
      (field) => sent[field] !== undefined && !isDeepStrictEqual(sent[field], before[field]),
    );
    if (fields.length === 0) return { webhook: before };

    const isRetried = fields.includes('url') || fields.includes('is_active');
    const changes = { ...sent, ...(isRetried && DUE_NOW), ...(is_active && { disabled_reason: null }) };
    const webhook = await changeWebhook(db, id, changes);
    await note({ ...context, db }, 'webhook.updated', webhook, { fields });
    return { webhook };
  });
}

/** Forgets failures, so that a webhook is due now. */
const DUE_NOW = { failures: 0, first_failed_at: null, next_attempt_at: NOW };

const changeWebhook = (db: Db, id: number, changes: UpdateObject<Tables, 'webhooks'>) =>
  db
    .updateTable('webhooks')
    // A delivery under way ends, and the next one begins at once.
    .set({ ...changes, leased_until: null, updated_at: NOW })
    .where('id', '=', id)
    .returning(COLUMNS)
    .executeTakeFirstOrThrow(unknownWebhook);

export async function deleteWebhook(context: ProjectContext, { id }: WebhookChoice): Promise<void> {
  await mustOwn(context, id);
  await transact(context.db, async (db) => {
    const webhook = await db
      .deleteFrom('webhooks')
      .where('id', '=', id)
      .returning(['id', 'project_id'])
      .executeTakeFirstOrThrow(unknownWebhook);
    await note({ ...context, db }, 'webhook.deleted', webhook);
  });
}

/** Gives a webhook a new secret. For a day, messages are signed with the previous one, too. */
export async function rotateSecret(context: ProjectContext, { id }: WebhookChoice) {
  await mustOwn(context, id);
  const secret = makeWebhookSecret();
  return transact(context.db, async (db) => {
    const webhook = await changeWebhook(db, id, {
      previous_secret: sql<string>`secret`,
      previous_expires_at: sql<Date>`now() + interval '24 hours'`,
      secret: context.secretBox.seal(secret, id, 'webhook'),
    });
    await note({ ...context, db }, 'webhook.rotated', webhook);
    return { webhook, secret };
  });
}

/** The last attempts, newest first. */
export async function listDeliveries(context: ProjectContext, { id, ...page }: DeliveryList) {
  await mustOwn(context, id);
  const deliveries = context.db.selectFrom('webhook_deliveries').select(DELIVERY_COLUMNS).where('webhook_id', '=', id);
  return readPage('deliveries', deliveries, page, ['number'], 'desc');
}

/** Moves a webhook back before an event, so that this one and all later ones are sent again in their order. */
export async function redeliver(context: ProjectContext, { id, event_id }: WebhookRedeliver) {
  const { project_id } = await mustOwn(context, id);
  const [event] = await query(
    context.db,
    sql<{ is_sent: boolean; transaction: string }>`
      select (e.transaction_id, e.id) <= (w.after_transaction, w.after_event) as is_sent, e.transaction_id::text as transaction
      from events e join webhooks w on w.id = ${id} where e.id = ${event_id}::bigint and e.project_id = ${project_id}`,
  );
  if (!event) throw invalid({ event_id: 'is not an event of this project that is still kept' }, 'unknown_reference');
  // One that was not sent yet follows anyway.
  const back = event.is_sent && {
    after_transaction: event.transaction,
    after_event: sql<string>`${event_id}::bigint - 1`,
  };
  return transact(context.db, async (db) => {
    const webhook = await changeWebhook(db, id, { ...back, ...DUE_NOW });
    await note({ ...context, db }, 'webhook.redelivered', webhook);
    return { webhook };
  });
}

/** Has a test event sent to this receiver alone, within a second or two. */
export async function sendTest(context: ProjectContext, { id }: WebhookChoice): Promise<void> {
  const { project_id } = await mustOwn(context, id);
  await transact(context.db, async (db) => {
    await db.updateTable('webhooks').set({ test_requested_at: NOW }).where('id', '=', id).execute();
    await note({ ...context, db }, 'webhook.tested', { id, project_id });
  });
}

async function mustOwn(context: ProjectContext, id: number) {
  const webhook = await context.db
    .selectFrom('webhooks')
    .select('project_id')
    .where('id', '=', id)
    .executeTakeFirstOrThrow(unknownWebhook);
  await namedProject(context, webhook);
  return webhook;
}

const unknownWebhook = () => notFound('There is no such webhook.');

function mustBeCallable({ webhookAllowedHosts }: ProjectContext, url: string): void {
  const problem = addressProblem(url, webhookAllowedHosts);
  if (problem !== undefined) throw invalid({ url: problem });
}

const sorted = (types: readonly EventType[] | null | undefined) => (types ? [...new Set(types)].sort() : null);

const note = (
  context: ProjectContext,
  type: EventType,
  { id, project_id }: { id: number; project_id: number },
  data?: { fields: string[] },
) => writeEvents(context, [{ type, project_id, subject_id: id, data }]);
