import { sql } from 'kysely';
import { badRequest } from '../../../shared/errors.ts';
import { type Db, transact } from '../../database/query.ts';
import { insertRow, rowById } from '../../database/rows.ts';
import { NOW } from '../../database/timestamp.ts';
import { type OpenedCheckout, PAYMENTS_NOT_SET_UP } from '../../payments/provider.ts';
import type { Context, Origin } from '../access/context.ts';
import { type WriteContext, writeEvents } from '../event/event.ts';
import {
  CHECKOUT_COLUMNS,
  type CheckoutRow,
  OPEN,
  PAID_STATUS,
  type PaidStatus,
  type SubscriptionStatus,
} from './checkoutRow.ts';
import type { PlanRow } from './plan.ts';
import { type CancelledCheckout, cancelOpenCheckouts, closeAtProvider, markPaid } from './settlement.ts';
import { updateSubscription } from './subscriptionEvent.ts';

type CheckoutOrder = {
  subscription_id: number;
  plan: PlanRow;
  created_by: number | null;
  provider: CheckoutRow['provider'];
};

/** Payment providers allow at most 24 hours. */
const OPEN_HOURS = 23;

/** Finds the open checkout for the same choice, after marking those as expired that are too old or of another provider. */
export async function findOpenCheckout(
  db: Db,
  { subscription_id, plan, provider }: CheckoutOrder,
): Promise<CheckoutRow | undefined> {
  const open = { subscription_id, plan_id: plan.id, status: OPEN };
  await db
    .updateTable('checkouts')
    .set({ status: 'expired', updated_at: NOW })
    .where(({ and }) => and(open))
    .where(({ or, eb }) => or([eb('expires_at', '<=', NOW), eb('provider', '<>', provider)]))
    .execute();
  return db
    .selectFrom('checkouts')
    .select(CHECKOUT_COLUMNS)
    .where(({ and }) => and(open))
    .executeTakeFirst();
}

export function addCheckout(db: Db, order: CheckoutOrder): Promise<CheckoutRow> {
  const { subscription_id, plan, created_by, provider } = order;
  const { id: plan_id, price_cents, currency } = plan;
  const expires_at = sql<Date>`now() + make_interval(hours => ${OPEN_HOURS})`;
  const row = { subscription_id, plan_id, price_cents, currency, created_by, provider, expires_at };
  return insertRow(db, 'checkouts', row, CHECKOUT_COLUMNS);
}

/** Activates a free plan with a paid checkout, and cancels the open checkouts. Does nothing if that plan is active already. */
export async function payWithoutProvider(
  context: WriteContext,
  order: CheckoutOrder,
): Promise<{ checkout: CheckoutRow; cancelled: CancelledCheckout[] }> {
  const { db, origin } = context;
  const cancelled = await cancelOpenCheckouts(db, order);
  const active = await findActiveFreePlan(db, order);
  const checkout = active ?? (await addCheckout(db, order));
  // It may have become a trial again since.
  await (active ? updateSubscription(context, active) : markPaid(context, checkout));
  return { checkout: { ...checkout, checkout_url: pageOf(checkout, origin) }, cancelled };
}

const findActiveFreePlan = (db: Db, { subscription_id, plan }: CheckoutOrder) =>
  db
    .selectFrom('checkouts')
    .select(CHECKOUT_COLUMNS)
    .where(({ and }) => and({ subscription_id, plan_id: plan.id, status: 'paid', price_cents: 0 }))
    .where('ended_at', 'is', null)
    .executeTakeFirst();

/**
 * Opens a checkout at the provider, outside any transaction, so that no row stays locked meanwhile. Concurrent calls on a node
 * share one request; concurrent requests of several nodes get the same checkout, by its reference as idempotency key.
 */
export function openAtProvider(context: Context, checkout: CheckoutRow): Promise<OpenedCheckout> {
  const { reference } = checkout;
  const pending = opening.get(reference);
  if (pending) return pending;
  const opened = askProvider(context, checkout).finally(() => opening.delete(reference));
  opening.set(reference, opened);
  return opened;
}
const opening = new Map<string, Promise<OpenedCheckout>>();

async function askProvider(context: Context, checkout: CheckoutRow): Promise<OpenedCheckout> {
  const { db, origin, log, services } = context;
  const { payments } = services;
  const { id, reference, price_cents, currency } = checkout;
  const plan = await db
    .selectFrom('checkouts as c')
    .innerJoin('plans as p', 'p.id', 'c.plan_id')
    .select(['p.product', 'p.plan', 'p.period'])
    .select(sql<number>`floor(extract(epoch from c.expires_at))::float8`.as('expiresAtSeconds'))
    .where('c.id', '=', id)
    .executeTakeFirstOrThrow();
  try {
    const order = { ...plan, reference, price_cents, currency, returnUrl: pageOf(checkout, origin) };
    if (!payments) throw new Error(PAYMENTS_NOT_SET_UP);
    const opened = await payments.open(order);
    const error = await transact(db, (db) => storeOpened({ ...context, db }, checkout, opened));
    if (!error) return opened;
    // Another checkout was paid in the meantime, and could not close this one, which had no session id yet.
    await closeAtProvider({ services, log }, [opened]);
    throw error;
  } catch (error) {
    // The provider may cache the failure for this idempotency key: the next call uses a new checkout, unless another node opened this one.
    await db
      .updateTable('checkouts')
      .set({ status: 'cancelled', updated_at: NOW })
      .where('id', '=', id)
      .where('status', '=', 'open')
      .where('checkout_url', 'is', null)
      .execute();
    throw error;
  }
}

/** Stores what the provider opened; returns the error if the subscription was paid meanwhile. Several nodes write one event. */
async function storeOpened(
  context: WriteContext,
  { id, subscription_id }: CheckoutRow,
  { session_id, checkout_url }: OpenedCheckout,
): Promise<Error | undefined> {
  const { db } = context;
  const checkout = await rowById(db, 'checkouts', id, ['checkout_url'], { lock: 'no key update' });
  await db.updateTable('checkouts').set({ session_id, checkout_url, updated_at: NOW }).where('id', '=', id).execute();
  const { status, platform_id, ...data } = await db
    .selectFrom('checkouts as c')
    .innerJoin('subscriptions as s', 's.id', 'c.subscription_id')
    .innerJoin('plans as p', 'p.id', 'c.plan_id')
    .select(['s.status', 's.platform_id', 's.product', 'p.plan'])
    .where('c.id', '=', id)
    .executeTakeFirstOrThrow();
  const error = paymentError(status);
  if (!error && checkout.checkout_url === null) {
    const started = { type: 'subscription.upgrade_started', platform_id, subject_id: subscription_id, data } as const;
    await writeEvents(context, [started]);
  }
  return error;
}

/** The error if a subscription can't be paid in this status. One that is free or has ended can be paid. */
export function paymentError(status: SubscriptionStatus): Error | undefined {
  if (status === 'paid') return badRequest('This subscription is already paid.', 'trial_already_paid');
  if (status === 'past_due') {
    return badRequest(
      "A payment for this subscription is due. Settle it first; you can't start a second subscription.",
      'payment_due',
    );
  }
  return undefined;
}

const pageOf = ({ reference }: CheckoutRow, { serviceUrl }: Origin) => `${serviceUrl}/checkout/${reference}`;

export type CheckoutView = Pick<CheckoutRow, 'reference' | 'provider' | 'checkout_url' | 'price_cents' | 'currency'> &
  Pick<PlanRow, 'product' | 'plan' | 'period'> & { status: CheckoutRow['status'] | PaidStatus };

/** The data of a checkout's page, which anyone with its reference may see. */
export function viewCheckout(db: Db, reference: string): Promise<CheckoutView | undefined> {
  return db
    .selectFrom('checkouts as c')
    .innerJoin('plans as p', 'p.id', 'c.plan_id')
    .select(['c.reference', 'c.provider', 'c.checkout_url', 'c.price_cents', 'c.currency'])
    .select(['p.product', 'p.plan', 'p.period', VIEWED_STATUS.as('status')])
    .where('c.reference', '=', reference)
    .executeTakeFirst();
}

const VIEWED_STATUS = sql<CheckoutView['status']>`
  case when c.status = 'open' and c.expires_at <= now() then 'expired' when c.status = 'paid' then ${PAID_STATUS} else c.status end`;
