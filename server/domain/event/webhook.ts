import { isDeepStrictEqual } from 'node:util';
import { sql, type UpdateObject } from 'kysely';
import { badRequest, invalid, notFound } from '../../../shared/errors.ts';
import { EVENT_TYPES, type EventData, type EventType } from '../../../shared/event.ts';
import {
  type DeliveryList,
  RIGHT_LOST,
  Webhook,
  type WebhookChoice,
  type WebhookCreate,
  WebhookDelivery,
  type WebhookList,
  type WebhookUpdate,
} from '../../../shared/webhook.ts';
import { mustBeAtLevel } from '../../database/level.ts';
import { readPage } from '../../database/page.ts';
import { lockProject } from '../../database/projectLock.ts';
import { type Db, queryOne, transact } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { countRows, insertRow, rowById } from '../../database/rows.ts';
import type { Tables } from '../../database/tables.ts';
import { daysBefore, NOW } from '../../database/timestamp.ts';
import { addressProblem } from '../../security/outgoing.ts';
import type { ProjectContext } from '../access/context.ts';
import { namedProject } from '../account/member.ts';
import { mustBeProven, mustStillBeValid } from '../account/proof.ts';
import { writeEvents } from './event.ts';
import { latestPlace } from './feed.ts';
import { LEASE_AFTER_CHANGE } from './webhookLease.ts';
import { makeWebhookSecret } from './webhookMessage.ts';

const PLAIN_COLUMNS = Webhook.keyof().options.filter(
  (column) => column !== 'next_attempt_at' && column !== 'disabled_reason',
);
const COLUMNS = [
  ...PLAIN_COLUMNS,
  sql<Date | null>`case when failures > 0 and is_active then next_attempt_at end`.as('next_attempt_at'),
  sql<
    Webhook['disabled_reason']
  >`coalesce(disabled_reason, case when not is_active and right_lost_at is not null then ${sql.lit(RIGHT_LOST)} end)`.as(
    'disabled_reason',
  ),
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
  await mustBeKnown(context.db, types);
  return transact(context.db, async (db) => {
    await mustHaveRoom(db, project_id);
    await mustStillBeValid({ ...context, db });
    const { transaction, id: event } = await latestPlace(db);
    // Its id is needed to encrypt its secret.
    const next = sql<{ id: number }>`select nextval(pg_get_serial_sequence('webhooks', 'id'))::int as id`;
    const { id } = await queryOne(db, next);
    const secret = makeWebhookSecret();
    const row = {
      ...{ id, project_id, url, types: sorted(types), after_transaction: transaction, after_event: event },
      secret: context.services.secretBox.seal(secret, id, 'webhook'),
      ...makerOf(context),
    };
    const webhook = await insertRow(db, 'webhooks', row, COLUMNS);
    await writeWebhookEvent({ ...context, db }, 'webhook.created', webhook);
    return { webhook, secret };
  });
}

/** Throws a 400 at the cap. Locks the project, so that the count can't change meanwhile. */
async function mustHaveRoom(db: Db, project_id: number): Promise<void> {
  await lockProject(db, project_id);
  if ((await countRows(db, 'webhooks', sql`project_id = ${project_id}`)) >= MOST_WEBHOOKS)
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

/** Changes a webhook. With another address, or active again, it is tried at once, and belongs to the caller from now on. */
export async function updateWebhook(context: ProjectContext, { id, url, types, is_active }: WebhookUpdate) {
  await mustOwn(context, id);
  if (url != null) mustBeCallable(context, url);
  await mustBeKnown(context.db, types);
  const sent = {
    url: url ?? undefined,
    types: types === undefined ? undefined : sorted(types),
    is_active: is_active ?? undefined,
  };
  return transact(context.db, async (db) => {
    const before = await rowById(db, 'webhooks', id, COLUMNS, { lock: 'update', missing: unknownWebhook });
    if (hasMore(sent.types, before.types)) await mustBeProven({ ...context, db }, 'always', undefined);
    const isSwitchedOn = is_active === true && (!before.is_active || before.right_lost_at !== null);
    const fields: string[] = (['url', 'types', 'is_active'] as const).filter(
      (field) => sent[field] !== undefined && !isDeepStrictEqual(sent[field], before[field]),
    );
    // Switched off by hand, it stays off when its maker gets the right back.
    const isKeptOff = is_active === false && before.right_lost_at !== null;
    if (isKeptOff) fields.push('right_lost_at');
    if (fields.length === 0 && !isSwitchedOn) return { webhook: before };

    const isRetried = fields.includes('url') || fields.includes('is_active');
    // Who decides where events go answers for it.
    const maker = isSwitchedOn || fields.includes('url') ? makerOf(context) : undefined;
    if (maker && maker.created_by !== before.created_by) fields.push('created_by');
    const changes = {
      ...sent,
      ...maker,
      ...(isRetried && DUE_NOW),
      ...(is_active && { disabled_reason: null }),
      ...(is_active === false && { right_lost_at: null }),
    };
    const webhook = await changeWebhook(db, id, changes);
    await writeWebhookEvent({ ...context, db }, 'webhook.updated', webhook, { fields });
    return { webhook };
  });
}

/** Whether it gets events that it did not get before; null is all types. */
const hasMore = (types: readonly string[] | null | undefined, before: readonly string[] | null) =>
  types !== undefined && before !== null && (types === null || types.some((type) => !before.includes(type)));

/** Whose right to the events counts from now on. */
const makerOf = ({ caller }: ProjectContext) => ({
  created_by: caller.id,
  key_id: caller.key?.id ?? null,
  right_lost_at: null,
});

/** Forgets failures, so that a webhook is due now. */
export const DUE_NOW = { failures: 0, first_failed_at: null, next_attempt_at: NOW };

export const changeWebhook = (db: Db, id: number, changes: UpdateObject<Tables, 'webhooks'>) =>
  db
    .updateTable('webhooks')
    .set({ ...changes, leased_until: LEASE_AFTER_CHANGE, updated_at: NOW })
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
    await writeWebhookEvent({ ...context, db }, 'webhook.deleted', webhook);
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
      secret: context.services.secretBox.seal(secret, id, 'webhook'),
    });
    await writeWebhookEvent({ ...context, db }, 'webhook.rotated', webhook);
    return { webhook, secret };
  });
}

/** The last attempts, newest first. */
export async function listDeliveries(context: ProjectContext, { id, ...page }: DeliveryList) {
  await mustOwn(context, id);
  const deliveries = context.db.selectFrom('webhook_deliveries').select(DELIVERY_COLUMNS).where('webhook_id', '=', id);
  return readPage('deliveries', deliveries, page, ['number'], 'desc');
}

/** Has a test event sent to this receiver alone. While one waits or is sent, there is no other. */
export async function sendTest(context: ProjectContext, { id }: WebhookChoice): Promise<void> {
  const { project_id } = await mustOwn(context, id);
  await transact(context.db, async (db) => {
    await db
      .updateTable('webhooks')
      .set({ test_requested_at: sql`coalesce(test_requested_at, now())`, resend_events: WITH_TEST })
      .where('id', '=', id)
      .execute();
    await writeWebhookEvent({ ...context, db }, 'webhook.tested', { id, project_id });
  });
}

/** A test waits behind events that are sent again. Without any, `test_requested_at` alone stands for it. */
const WITH_TEST = sql<
  string[]
>`case when 0 <> all(resend_events) then array_append(resend_events, 0) else resend_events end`;

export async function mustOwn(context: ProjectContext, id: number) {
  const webhook = await rowById(context.db, 'webhooks', id, ['project_id'], { missing: unknownWebhook });
  await namedProject(context, webhook);
  return webhook;
}

export const unknownWebhook = () => notFound('There is no such webhook.');

function mustBeCallable({ services }: ProjectContext, url: string): void {
  const problem = addressProblem(url, services.webhookAllowedHosts);
  if (problem !== undefined) throw invalid({ url: problem });
}

/** Nodes of the previous version could not read such a webhook. */
async function mustBeKnown(db: Db, types: readonly EventType[] | null | undefined): Promise<void> {
  if (types?.some((type) => EVENT_TYPES[type].level)) await mustBeAtLevel(db, 1);
}

const sorted = (types: readonly EventType[] | null | undefined) => (types ? [...new Set(types)].sort() : null);

export const writeWebhookEvent = (
  context: ProjectContext,
  type: EventType,
  { id, project_id }: { id: number; project_id: number },
  data?: EventData,
) => writeEvents(context, [{ type, project_id, subject_id: id, data }]);
