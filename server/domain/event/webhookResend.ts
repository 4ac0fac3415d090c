import { sql } from 'kysely';
import { badRequest, invalid, tooManyRequests } from '../../../shared/errors.ts';
import { callsFor } from '../../../shared/limits.ts';
import type { WebhookEventChoice } from '../../../shared/webhook.ts';
import { lockProject } from '../../database/projectLock.ts';
import { type Db, query, transact } from '../../database/query.ts';
import type { ProjectContext } from '../access/context.ts';
import { readEvents } from './feed.ts';
import { changeWebhook, DUE_NOW, mustOwn, unknownWebhook, writeWebhookEvent } from './webhook.ts';

/** How many events one call goes back at most; also how many may wait to be sent again in a project. */
const MOST_REDELIVERED = 10_000;
/** How many may wait to be sent again to one host: more than one project can use up, since a host may have receivers of many projects. */
const MOST_FOR_HOST = 5 * MOST_REDELIVERED;
/** The pace that a receiver is expected to have: for as long as it would take, events count as waiting. */
const REDELIVERED_PER_SECOND = 10;
const SHORTEST_PAUSE_SECONDS = 10;

/**
 * Moves a webhook back before an event, so that this one and all later ones are sent again in their order. It counts as calls by
 * the number of events, and the same webhook has to wait before the next time.
 */
export async function redeliver(context: ProjectContext, { id, event_id }: WebhookEventChoice) {
  const { project_id } = await mustOwn(context, id);
  const { transaction, count } = await findSentEvent(context.db, { id, event_id, project_id });
  // One that was not sent yet follows anyway.
  const back = count > 0 && { after_transaction: transaction, after_event: sql<string>`${event_id}::bigint - 1` };
  const seconds = Math.max(SHORTEST_PAUSE_SECONDS, count / REDELIVERED_PER_SECOND);

  const work = () =>
    transact(context.db, async (db) => {
      await lockProject(db, project_id);
      await mustHaveTime(db, { id, project_id, seconds });
      const redelivery_ends_at = sql<Date>`now() + make_interval(secs => ${seconds})`;
      const webhook = await changeWebhook(db, id, { ...back, ...DUE_NOW, redelivery_ends_at });
      await writeWebhookEvent({ ...context, db }, 'webhook.redelivered', webhook, { event_id, count });
      return { webhook };
    });
  const further = callsFor(count) - 1;
  return further > 0 && context.countMore ? context.countMore(further, work) : work();
}

/** The place of an event, and how many events from there on were sent already. Reads no more than one call may send again. */
async function findSentEvent(
  db: Db,
  { id, event_id, project_id }: WebhookEventChoice & { project_id: number },
): Promise<{ transaction: string; count: number }> {
  const [event] = await query(
    db,
    sql<{ transaction: string; count: number; read_count: number }>`
      select first.transaction_id::text as transaction, sent.count, sent.read_count
      from webhooks w join events first on first.id = ${event_id}::bigint and first.project_id = ${project_id}
      cross join lateral (
        select count(*) filter (where w.types is null or read.type = any(w.types))::int as count, count(*)::int as read_count
        from (
          select e.type from events e where e.project_id = w.project_id
            and (e.transaction_id, e.id) >= (first.transaction_id, first.id)
            and (e.transaction_id, e.id) <= (w.after_transaction, w.after_event)
          order by e.transaction_id, e.id limit ${sql.lit(MOST_REDELIVERED + 1)}) as read) as sent
      where w.id = ${id}`,
  );
  if (!event) throw unknownEvent();
  if (event.read_count > MOST_REDELIVERED)
    throw invalid({ event_id: `is more than ${MOST_REDELIVERED} events back: choose a later one` });
  return event;
}

const notActive = () => badRequest('The webhook is not active: set is_active first.', 'webhook_not_active');

const unknownEvent = () =>
  invalid({ event_id: 'is not an event of this project that is still kept' }, 'unknown_reference');

type Redelivery = { id: number; project_id: number; seconds: number };
type Redelivering = Redelivery & { url: string; is_active: boolean };

/** Throws the 400 of a webhook that is not active, and the 429 while events of it, or too many of its project or host, are sent again. */
async function mustHaveTime(db: Db, { id, project_id, seconds }: Redelivery): Promise<void> {
  const others = await query(
    db,
    sql<Redelivering>`
      select id, project_id, url, is_active, greatest(0, extract(epoch from redelivery_ends_at - now()))::float8 as seconds
      from webhooks where redelivery_ends_at > now() or id = ${id}`,
  );
  const own = others.find((webhook) => webhook.id === id);
  if (!own) throw unknownWebhook();
  if (!own.is_active) throw notActive();
  if (own.seconds > 0) throw tooManyResends('Events are sent to this webhook again already.', own.seconds);
  const host = hostOf(own.url);
  const waiting = (isSame: (webhook: Redelivering) => boolean) =>
    others.filter(isSame).reduce((sum, webhook) => sum + webhook.seconds, seconds);
  const excess = Math.max(
    waiting((webhook) => webhook.project_id === project_id) - MOST_REDELIVERED / REDELIVERED_PER_SECOND,
    waiting(({ url }) => hostOf(url) === host) - MOST_FOR_HOST / REDELIVERED_PER_SECOND,
  );
  if (excess > 0) throw tooManyResends('Too many events of this project, or for this host, are sent again.', excess);
}

const hostOf = (url: string) => URL.parse(url)?.hostname;

const tooManyResends = (what: string, seconds: number) =>
  tooManyRequests(`${what} Try again later.`, Math.ceil(seconds), 'too_many_resends');

/** How many events may wait to be sent again on their own. */
const MOST_RESENDS = 20;

/** Has one event sent again, with the same id, beside the others. A test that waits already comes first. */
export async function resend(context: ProjectContext, { id, event_id }: WebhookEventChoice): Promise<void> {
  const { project_id } = await mustOwn(context, id);
  const [event] = await query(
    context.db,
    sql<{ is_wanted: boolean; is_active: boolean }>`
      select (w.types is null or e.type = any(w.types)) as is_wanted, w.is_active
      from webhooks w join events e on e.id = ${event_id}::bigint and e.project_id = w.project_id where w.id = ${id}`,
  );
  if (!event) throw unknownEvent();
  if (!event.is_wanted) throw invalid({ event_id: 'has a type that this webhook is not for' }, 'unknown_reference');
  if (!event.is_active) throw notActive();

  await transact(context.db, async (db) => {
    const queued = await db
      .updateTable('webhooks')
      .set({
        resend_events: sql<
          string[]
        >`coalesce(resend_events, case when test_requested_at is not null then array[0::bigint] end)
          || ${event_id}::bigint`,
        test_requested_at: sql<Date>`coalesce(test_requested_at, now())`,
      })
      .where('id', '=', id)
      .where(sql<boolean>`coalesce(cardinality(resend_events), 0) < ${sql.lit(MOST_RESENDS)}`)
      .returning('id')
      .executeTakeFirst();
    if (!queued)
      throw badRequest(`${MOST_RESENDS} events of this webhook wait to be sent again already.`, 'place_full');
    await writeWebhookEvent({ ...context, db }, 'webhook.redelivered', { id, project_id }, { event_id, count: 1 });
  });
}

/** Moves a webhook behind the next event, which its receiver does not take. */
export async function skip(context: ProjectContext, { id, event_id }: WebhookEventChoice) {
  await mustOwn(context, id);
  return transact(context.db, async (db) => {
    const { types, project_id, ...place } = await db
      .selectFrom('webhooks')
      .select(['types', 'project_id'])
      .select([sql<string>`after_transaction::text`.as('transaction'), sql<string>`after_event::text`.as('id')])
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirstOrThrow(unknownWebhook);
    const { events, places } = await readEvents(db, { place: { ...place, seconds: 0 }, types, limit: 1 }, [project_id]);
    const [behind] = places;
    if (!behind || events[0]?.id !== event_id)
      throw badRequest('This is not the event that the webhook sends next.', 'event_not_next');

    const moved = { after_transaction: behind.transaction, after_event: behind.id };
    const webhook = await changeWebhook(db, id, { ...moved, ...DUE_NOW });
    await writeWebhookEvent({ ...context, db }, 'webhook.skipped', webhook, { event_id });
    return { webhook };
  });
}
