import { sql } from 'kysely';
import { type Db, query, transact } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import type { PaymentProvider, SubscriptionEvent } from '../../payments/provider.ts';
import type { Context } from '../access/context.ts';
import { type EventContext, type WriteContext, writeEvents } from '../event/event.ts';
import { type CheckoutRow, hasReference, lockCheckout, PAID_STATUS, type SubscriptionStatus } from './checkoutRow.ts';

/** What the notifications of a payment provider need: nobody is signed in. */
export type PaymentContext = EventContext & Pick<Context, 'db' | 'log'>;

/**
 * Applies an event of a subscription after its checkout. Events may be repeated, arrive in any order, and before the payment
 * itself: the checkout stores them, and the subscription's status is derived from it.
 */
export async function applySubscriptionEvent(
  context: PaymentContext & { services: { payments: PaymentProvider } },
  { provider_subscription_id, reference, change, at, isToBeCancelled }: SubscriptionEvent,
): Promise<void> {
  const { services, log } = context;
  const { payments } = services;
  const isOurs = await transact(context.db, async (db) => {
    const checkout = await lockCheckout(
      db,
      sql<boolean>`provider = ${payments.name} and (provider_subscription_id = ${provider_subscription_id}
        or (provider_subscription_id is null and ${hasReference(reference)}))`,
    );
    if (!checkout) return false;

    const { id } = checkout;
    await db.updateTable('checkouts').set({ provider_subscription_id }).where('id', '=', id).execute();
    if (change === 'ended') await end(db, checkout, at);
    else await setFlag(db, checkout, change, at);
    const { paid_status } = await db
      .selectFrom('checkouts as c')
      .select(PAID_STATUS.as('paid_status'))
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    if (checkout.status === 'paid' && paid_status !== checkout.paid_status) {
      log.info({ subscription: checkout.subscription_id, change, status: paid_status }, 'A paid subscription changed.');
      await updateSubscription({ ...context, db }, checkout);
    }
    return true;
  });

  // Also for repeated events: the provider may have been unreachable the first time.
  if (isOurs && isToBeCancelled) await payments.cancel?.(provider_subscription_id);
}

const FLAGS = {
  renewal_failed: { flag: 'is_past_due', changedAt: 'past_due_changed_at', value: true },
  renewed: { flag: 'is_past_due', changedAt: 'past_due_changed_at', value: false },
  disputed: { flag: 'is_disputed', changedAt: 'disputed_changed_at', value: true },
  dispute_won: { flag: 'is_disputed', changedAt: 'disputed_changed_at', value: false },
} as const;

/**
 * Sets a flag unless a newer event is known. The provider's timestamps are in seconds: of two events in the same second the
 * positive one wins, since a paid invoice can't fail later, and a closed dispute can't be opened again.
 */
export async function setFlag(
  db: Db,
  { id }: Pick<CheckoutRow, 'id'>,
  change: keyof typeof FLAGS,
  at: Date,
): Promise<void> {
  const { flag, changedAt, value } = FLAGS[change];
  await db
    .updateTable('checkouts')
    .set(flag, value)
    .set(changedAt, at)
    .set('updated_at', NOW)
    .where('id', '=', id)
    .where(({ or, eb }) => or([eb(changedAt, 'is', null), eb(changedAt, value ? '<' : '<=', at)]))
    .execute();
}

async function end(db: Db, { id }: Pick<CheckoutRow, 'id'>, at: Date): Promise<void> {
  await db
    .updateTable('checkouts')
    .set({ ended_at: at, updated_at: NOW })
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .execute();
}

/**
 * Sets the status of a subscription, which is locked, to the best of its paid checkouts; ties go to the one with the current plan.
 * Writes the event, if that changes something.
 */
export async function updateSubscription(
  context: WriteContext,
  { subscription_id }: Pick<CheckoutRow, 'subscription_id'>,
): Promise<void> {
  const [changed] = await query(
    context.db,
    sql<Changed>`
      update subscriptions set status = best.paid_status, plan_id = best.plan_id, updated_at = now(),
        paid_at = case when best.paid_status = 'free' then null
          when subscriptions.status in ('paid', 'past_due') then paid_at else now() end
      from (
        select c.plan_id, p.plan, ${PAID_STATUS} as paid_status, s.status as status_before
        from checkouts c join subscriptions s on s.id = c.subscription_id join plans p on p.id = c.plan_id
        where s.id = ${subscription_id} and c.status = 'paid'
        order by ended_at is not null, is_past_due or is_disputed, c.plan_id = s.plan_id desc nulls last, c.id limit 1
      ) as best
      where id = ${subscription_id}
        and (subscriptions.status, subscriptions.plan_id) is distinct from (best.paid_status, best.plan_id)
      returning subscriptions.platform_id, subscriptions.product, subscriptions.status, best.plan, best.status_before`,
  );
  if (!changed) return;
  const { platform_id, status_before, ...data } = changed;
  const isActivated = ['paid', 'free'].includes(data.status) && ['trial', 'free', 'ended'].includes(status_before);
  const type = isActivated ? 'subscription.paid' : 'subscription.changed';
  await writeEvents(context, [{ type, platform_id, subject_id: subscription_id, data }]);
}

type Changed = Pick<Row<'subscriptions'>, 'platform_id' | 'product' | 'status'> & {
  plan: string;
  status_before: SubscriptionStatus;
};
