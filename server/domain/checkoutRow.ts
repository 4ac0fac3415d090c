import { type RawBuilder, sql } from 'kysely';
import type { SUBSCRIPTION_STATUSES } from '../../shared/subscription.ts';
import { type Db, query } from '../database/query.ts';

export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];

export type CheckoutRow = {
  id: number;
  reference: string;
  subscription_id: number;
  plan_id: number;
  provider: 'stripe' | 'test' | 'none';
  session_id: string | null;
  checkout_url: string | null;
  provider_subscription_id: string | null;
  status: 'open' | 'paid' | 'cancelled' | 'expired';
  price_cents: number;
  currency: string;
};

/** What a paid checkout makes of its subscription. */
export type Standing = Exclude<SubscriptionStatus, 'trial'>;
export const STANDING = sql<Standing>`
  case when ended_at is not null then 'ended' when is_past_due or is_disputed then 'past_due' else 'paid' end`;

export type LockedCheckout = CheckoutRow & {
  standing: Standing;
  subscription_status: SubscriptionStatus;
};

/** Finds a checkout by a condition. Its subscription is locked first, as whoever opens a checkout does. */
export async function lockCheckout(db: Db, condition: RawBuilder<unknown>): Promise<LockedCheckout | undefined> {
  // A name that the provider knows goes before a reference.
  const found = sql`from checkouts where ${condition} order by provider_subscription_id nulls last limit 1`;
  const [locked] = await query(
    db,
    sql<{ status: SubscriptionStatus }>`
      select status from subscriptions where id = (select subscription_id ${found}) for update`,
  );
  if (!locked) return undefined;
  const [checkout] = await query(db, sql<LockedCheckout>`select *, ${STANDING} as standing ${found}`);
  return checkout && { ...checkout, subscription_status: locked.status };
}

/** Somebody else who uses the same account at the provider has references of another kind. */
export const hasReference = (reference: string | undefined) =>
  isReference(reference ?? '') ? sql`reference = ${reference}::uuid` : sql`false`;

/** Whether it can name a checkout of ours. */
export const isReference = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
