import { type Expression, type SqlBool, sql } from 'kysely';
import type { Db } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import type { Row } from '../../database/tables.ts';
import { daysBefore } from '../../database/timestamp.ts';

export type SubscriptionStatus = Row<'subscriptions'>['status'];

export const CHECKOUT_COLUMNS = [
  'id',
  'reference',
  'subscription_id',
  'provider',
  'session_id',
  'checkout_url',
  'provider_subscription_id',
  'status',
  'price_cents',
  'currency',
] as const satisfies (keyof Row<'checkouts'>)[];
export type CheckoutRow = Pick<Row<'checkouts'>, (typeof CHECKOUT_COLUMNS)[number]>;

/** A literal, since a bound value would not use the partial index of open checkouts. */
export const OPEN = sql.lit<'open'>('open');

/** The status that a paid checkout `c` gives its subscription. */
export type PaidStatus = Exclude<SubscriptionStatus, 'trial'>;
export const PAID_STATUS = sql<PaidStatus>`
  case when c.ended_at is not null then 'ended' when c.price_cents = 0 then 'free'
    when c.is_past_due or c.is_disputed then 'past_due' else 'paid' end`;

export type LockedCheckout = CheckoutRow & {
  paid_status: PaidStatus;
  subscription_status: SubscriptionStatus;
};

/** Finds a checkout by a condition. Locks its subscription first, like opening a checkout: one lock order. */
export async function lockCheckout(db: Db, condition: Expression<SqlBool>): Promise<LockedCheckout | undefined> {
  // A match by the provider's subscription id comes before a match by reference.
  const found = db
    .selectFrom('checkouts as c')
    .where(condition)
    .orderBy('provider_subscription_id', (order) => order.asc().nullsLast())
    .limit(1);
  const locked = await db
    .selectFrom('subscriptions')
    .select('status')
    .where('id', '=', found.select('subscription_id'))
    .forUpdate()
    .executeTakeFirst();
  if (!locked) return undefined;
  const checkout = await found.select(CHECKOUT_COLUMNS).select(PAID_STATUS.as('paid_status')).executeTakeFirst();
  return checkout && { ...checkout, subscription_status: locked.status };
}

/**
 * Old checkouts that no notification of a provider needs any more: those that nobody paid, for which the provider knows no
 * subscription, and those that have ended. The last paid one of a subscription stays, since its status is derived from it.
 */
export const checkoutRemovals = (days: number): Removal[] => [
  {
    table: 'checkouts',
    due: (now) =>
      sql`t.status <> 'paid' and t.created_at < ${daysBefore(now, days)} and t.provider_subscription_id is null`,
    by: 'created_at',
  },
  {
    table: 'checkouts',
    due: (now) => sql`t.ended_at < ${daysBefore(now, days)} and (t.status <> 'paid' or exists (
      select from checkouts n where n.subscription_id = t.subscription_id and n.status = 'paid' and n.id > t.id))`,
    by: 'ended_at',
  },
];

/** Another service on the same provider account may use references that are not UUIDs. */
export const hasReference = (reference: string | undefined) =>
  isReference(reference ?? '') ? sql<boolean>`reference = ${reference}::uuid` : sql<boolean>`false`;

/** Whether the text can be the reference of a checkout. */
export const isReference = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
