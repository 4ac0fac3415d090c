import { type Expression, type SqlBool, sql } from 'kysely';
import type { Db } from '../database/query.ts';
import type { Row } from '../database/tables.ts';

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

/** Written into the statement, not bound: only then is the index of the open checkouts used. */
export const OPEN = sql.lit<'open'>('open');

/** What a paid checkout makes of its subscription. */
export type Standing = Exclude<SubscriptionStatus, 'trial'>;
export const STANDING = sql<Standing>`
  case when ended_at is not null then 'ended' when is_past_due or is_disputed then 'past_due' else 'paid' end`;

export type LockedCheckout = CheckoutRow & {
  standing: Standing;
  subscription_status: SubscriptionStatus;
};

/** Finds a checkout by a condition. Locks its subscription first, as opening a checkout does. */
export async function lockCheckout(db: Db, condition: Expression<SqlBool>): Promise<LockedCheckout | undefined> {
  // A name that the provider knows goes before a reference.
  const found = db
    .selectFrom('checkouts')
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
  const checkout = await found.select(CHECKOUT_COLUMNS).select(STANDING.as('standing')).executeTakeFirst();
  return checkout && { ...checkout, subscription_status: locked.status };
}

/** Somebody else who uses the same account at the provider has references of another kind. */
export const hasReference = (reference: string | undefined) =>
  isReference(reference ?? '') ? sql<boolean>`reference = ${reference}::uuid` : sql<boolean>`false`;

/** Whether it can name a checkout of ours. */
export const isReference = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
