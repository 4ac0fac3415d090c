import { sql } from 'kysely';
import type { Context } from '../context.ts';
import { type Db, query } from '../database/query.ts';
import { badRequest } from '../errors.ts';
import type { OpenedCheckout, Order } from '../payments/provider.ts';
import { type CheckoutRow, STANDING, type Standing, type SubscriptionStatus } from './checkoutRow.ts';
import type { PlanRow } from './plan.ts';
import { closeAtProvider, giveUpOpenCheckouts, markPaid, type Superseded } from './settlement.ts';

export type CheckoutOrder = {
  subscription_id: number;
  plan: PlanRow;
  created_by: number;
  provider: CheckoutRow['provider'];
};

/** Shorter than the 24 hours that Stripe allows at most. */
const OPEN_HOURS = 23;

/** The open checkout for the same choice, if there is one; those that ran out, or are of another provider, are put away. */
export async function findOpenCheckout(
  db: Db,
  { subscription_id, plan, provider }: CheckoutOrder,
): Promise<CheckoutRow | undefined> {
  await query(
    db,
    sql`
      update checkouts set status = 'expired', updated_at = now()
      where subscription_id = ${subscription_id} and plan_id = ${plan.id} and status = 'open'
        and (expires_at <= now() or provider <> ${provider})`,
  );
  const [checkout] = await query(
    db,
    sql<CheckoutRow>`
      select * from checkouts where subscription_id = ${subscription_id} and plan_id = ${plan.id} and status = 'open'`,
  );
  return checkout;
}

export async function addCheckout(db: Db, order: CheckoutOrder): Promise<CheckoutRow> {
  const { subscription_id, plan, created_by, provider } = order;
  const [checkout] = await query(
    db,
    sql<CheckoutRow>`
      insert into checkouts (subscription_id, plan_id, price_cents, currency, created_by, provider, expires_at)
      values (${subscription_id}, ${plan.id}, ${plan.price_cents}, ${plan.currency}, ${created_by}, ${provider},
        now() + make_interval(hours => ${OPEN_HOURS}))
      returning *`,
  );
  return checkout!;
}

/** For a plan that costs nothing; its page says that it is active. Nobody should pay for another one any more. */
export async function payWithoutProvider(
  db: Db,
  order: CheckoutOrder,
  publicUrl: string,
): Promise<{ checkout: CheckoutRow; superseded: Superseded[] }> {
  const superseded = await giveUpOpenCheckouts(db, order);
  const checkout = await addCheckout(db, order);
  await markPaid(db, checkout);
  return { checkout: { ...checkout, checkout_url: pageOf(checkout, publicUrl) }, superseded };
}

/**
 * Opens a checkout at the provider, outside any transaction: nobody waits for it in the database. It is asked once, however
 * many ask us at once; nodes that ask at once get the same checkout, by its reference.
 */
export function openAtProvider(context: Context, checkout: CheckoutRow): Promise<OpenedCheckout> {
  const { reference } = checkout;
  const asked = opening.get(reference);
  if (asked) return asked;
  const answer = askProvider(context, checkout).finally(() => opening.delete(reference));
  opening.set(reference, answer);
  return answer;
}
const opening = new Map<string, Promise<OpenedCheckout>>();

async function askProvider({ db, payments, publicUrl, log }: Context, checkout: CheckoutRow): Promise<OpenedCheckout> {
  const { id, reference, price_cents, currency } = checkout;
  const [plan] = await query(
    db,
    sql<Pick<Order, 'product' | 'plan' | 'period' | 'expiresAtSeconds'>>`
      select p.product, p.plan, p.period, floor(extract(epoch from c.expires_at))::int as "expiresAtSeconds"
      from checkouts c join plans p on p.id = c.plan_id where c.id = ${id}`,
  );
  try {
    const order = { ...plan!, reference, price_cents, currency, returnUrl: pageOf(checkout, publicUrl) };
    const opened = await payments!.open(order);
    await query(
      db,
      sql`
        update checkouts set session_id = ${opened.session_id}, checkout_url = ${opened.checkout_url}, updated_at = now()
        where id = ${id}`,
    );
    const refusal = refusalOf(await statusOf(db, checkout));
    if (!refusal) return opened;
    // Whoever paid for another one meanwhile could not close this one: it had no name yet.
    await closeAtProvider({ payments, log }, [opened]);
    throw refusal;
  } catch (error) {
    // The provider may remember a failure by its reference: the next call is to begin with a new one, unless another node got this one open.
    await query(
      db,
      sql`
        update checkouts set status = 'cancelled', updated_at = now()
        where id = ${id} and status = 'open' and checkout_url is null`,
    );
    throw error;
  }
}

/** Why nobody can pay for a subscription, if so. One that has ended can be paid for anew. */
export function refusalOf(status: SubscriptionStatus): Error | undefined {
  if (status === 'paid') return badRequest('This subscription is paid already.');
  if (status === 'past_due') {
    return badRequest('A payment for this subscription is due. Settle that one; a second subscription is not opened.');
  }
  return undefined;
}

async function statusOf(db: Db, { subscription_id }: CheckoutRow): Promise<SubscriptionStatus> {
  const [subscription] = await query(
    db,
    sql<{ status: SubscriptionStatus }>`select status from subscriptions where id = ${subscription_id}`,
  );
  return subscription!.status;
}

const pageOf = ({ reference }: CheckoutRow, publicUrl: string) => `${publicUrl}/checkout/${reference}`;

export type CheckoutView = Pick<CheckoutRow, 'reference' | 'provider' | 'checkout_url' | 'price_cents' | 'currency'> &
  Pick<PlanRow, 'product' | 'plan' | 'period'> & { status: CheckoutRow['status'] | Standing };

/** What the page of a checkout shows. Whoever knows its reference may see it. */
export async function viewCheckout(db: Db, reference: string): Promise<CheckoutView | undefined> {
  const [checkout] = await query(
    db,
    sql<CheckoutView>`
      select c.reference, c.provider, c.checkout_url, c.price_cents, c.currency, p.product, p.plan, p.period,
        case when c.status = 'open' and c.expires_at <= now() then 'expired'
          when c.status = 'paid' then ${STANDING} else c.status end as status
      from checkouts c join plans p on p.id = c.plan_id where c.reference = ${reference}::uuid`,
  );
  return checkout;
}
