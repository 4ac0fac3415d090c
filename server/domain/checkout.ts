import { sql } from 'kysely';
import type { Context } from '../context.ts';
import { type EntityManager, query, transact } from '../database/query.ts';
import { badRequest } from '../errors.ts';
import type { OpenedCheckout, Order, Settlement } from '../payments/provider.ts';
import type { PlanRow } from './plan.ts';

export type CheckoutRow = {
  id: number;
  reference: string;
  subscription_id: number;
  plan_id: number;
  provider: 'stripe' | 'test';
  session_id: string | null;
  checkout_url: string | null;
  status: 'open' | 'paid' | 'cancelled' | 'expired';
  price_cents: number;
  currency: string;
};

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
  em: EntityManager,
  { subscription_id, plan, provider }: CheckoutOrder,
): Promise<CheckoutRow | undefined> {
  await query(
    em,
    sql`
      update checkouts set status = 'expired', updated_at = now()
      where subscription_id = ${subscription_id} and plan_id = ${plan.id} and status = 'open'
        and (expires_at <= now() or provider <> ${provider})`,
  );
  const [checkout] = await query(
    em,
    sql<CheckoutRow>`
      select * from checkouts where subscription_id = ${subscription_id} and plan_id = ${plan.id} and status = 'open'`,
  );
  return checkout;
}

export async function addCheckout(em: EntityManager, order: CheckoutOrder): Promise<CheckoutRow> {
  const { subscription_id, plan, created_by, provider } = order;
  const [checkout] = await query(
    em,
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
  em: EntityManager,
  order: CheckoutOrder,
  publicUrl: string,
): Promise<{ checkout: CheckoutRow; superseded: Superseded[] }> {
  const superseded = await giveUpOpenCheckouts(em, order);
  const checkout = await addCheckout(em, order);
  await markPaid(em, checkout, null);
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

async function askProvider({ em, payments, publicUrl, log }: Context, checkout: CheckoutRow): Promise<OpenedCheckout> {
  const { id, reference, price_cents, currency } = checkout;
  const [plan] = await query(
    em,
    sql<Pick<Order, 'product' | 'plan' | 'period' | 'expiresAtSeconds'>>`
      select p.product, p.plan, p.period, floor(extract(epoch from c.expires_at))::int as "expiresAtSeconds"
      from checkouts c join plans p on p.id = c.plan_id where c.id = ${id}`,
  );
  try {
    const order = { ...plan!, reference, price_cents, currency, returnUrl: pageOf(checkout, publicUrl) };
    const opened = await payments.open(order);
    await query(
      em,
      sql`
        update checkouts set session_id = ${opened.session_id}, checkout_url = ${opened.checkout_url}, updated_at = now()
        where id = ${id}`,
    );
    if (!(await isPaid(em, checkout))) return opened;
    // Whoever paid for another one meanwhile could not close this one: it had no name yet.
    await closeAtProvider({ payments, log }, [opened]);
    throw paidAlready();
  } catch (error) {
    // The provider may remember a failure by its reference: the next call is to begin with a new one, unless another node got this one open.
    await query(
      em,
      sql`
        update checkouts set status = 'cancelled', updated_at = now()
        where id = ${id} and status = 'open' and checkout_url is null`,
    );
    throw error;
  }
}

export const paidAlready = () => badRequest('This subscription is paid already.');

async function isPaid(em: EntityManager, { subscription_id }: CheckoutRow): Promise<boolean> {
  const paid = await query(em, sql`select from subscriptions where id = ${subscription_id} and status = 'paid'`);
  return paid.length > 0;
}

const pageOf = ({ reference }: CheckoutRow, publicUrl: string) => `${publicUrl}/checkout/${reference}`;

export type CheckoutView = Pick<
  CheckoutRow,
  'reference' | 'provider' | 'checkout_url' | 'status' | 'price_cents' | 'currency'
> &
  Pick<PlanRow, 'product' | 'plan' | 'period'>;

/** What the page of a checkout shows. Whoever knows its reference may see it. */
export async function viewCheckout(em: EntityManager, reference: string): Promise<CheckoutView | undefined> {
  const [checkout] = await query(
    em,
    sql<CheckoutView>`
      select c.reference, c.provider, c.checkout_url, c.price_cents, c.currency, p.product, p.plan, p.period,
        case when c.status = 'open' and c.expires_at <= now() then 'expired' else c.status end as status
      from checkouts c join plans p on p.id = c.plan_id where c.reference = ${reference}::uuid`,
  );
  return checkout;
}

/**
 * Carries out how a checkout ended. The same again changes nothing, and neither does the end of one that was paid, in
 * whatever order they come; a payment counts even if the checkout had been given up.
 */
export async function settleCheckout(
  { em, payments, log }: Pick<Context, 'em' | 'payments' | 'log'>,
  { reference, session_id, outcome }: Settlement,
): Promise<void> {
  const superseded = await transact(em, async (em) => {
    const checkout = await lockCheckout(em, reference);
    if (!checkout || checkout.status === 'paid') return [];
    // On the test checkout nobody has paid before this: one that was given up meanwhile takes no payment.
    if (checkout.provider === 'test' && checkout.status !== 'open') return [];
    if (outcome !== 'paid') {
      await query(
        em,
        sql`update checkouts set status = ${outcome}, updated_at = now() where id = ${checkout.id} and status = 'open'`,
      );
      return [];
    }

    const isFirst = await markPaid(em, checkout, session_id);
    if (!isFirst) log.warn({ checkout: checkout.id }, 'A subscription was paid for twice: give one payment back.');
    return giveUpOpenCheckouts(em, checkout);
  });
  await closeAtProvider({ payments, log }, superseded);
}

/** What the provider calls a checkout that was given up; null if it does not know of it. */
type Superseded = Pick<CheckoutRow, 'session_id'>;

const giveUpOpenCheckouts = (em: EntityManager, { subscription_id }: Pick<CheckoutRow, 'subscription_id'>) =>
  query(
    em,
    sql<Superseded>`
      update checkouts set status = 'cancelled', updated_at = now()
      where subscription_id = ${subscription_id} and status = 'open' returning session_id`,
  );

/** Outside any transaction. What can't be closed is told to whoever runs the service. */
export async function closeAtProvider(
  { payments, log }: Pick<Context, 'payments' | 'log'>,
  superseded: Superseded[],
): Promise<void> {
  for (const { session_id } of superseded) {
    if (session_id === null) continue;
    await payments.close(session_id).catch((error) => log.warn(error, 'A checkout could not be closed.'));
  }
}

/** The subscription first, as whoever opens a checkout does. */
async function lockCheckout(em: EntityManager, reference: string): Promise<CheckoutRow | undefined> {
  await query(
    em,
    sql`
      select from subscriptions where id = (select subscription_id from checkouts where reference = ${reference}::uuid)
      for update`,
  );
  const [checkout] = await query(em, sql<CheckoutRow>`select * from checkouts where reference = ${reference}::uuid`);
  return checkout;
}

/** Whether it was what made the subscription a paid one. */
async function markPaid(em: EntityManager, checkout: CheckoutRow, sessionId: string | null): Promise<boolean> {
  await query(
    em,
    sql`
      update checkouts set status = 'paid', session_id = coalesce(session_id, ${sessionId}::text), updated_at = now()
      where id = ${checkout.id}`,
  );
  const paid = await query(
    em,
    sql`
      update subscriptions set status = 'paid', plan_id = ${checkout.plan_id}, paid_at = now(), updated_at = now()
      where id = ${checkout.subscription_id} and status = 'trial' returning id`,
  );
  return paid.length > 0;
}
