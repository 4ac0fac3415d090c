import { sql } from 'kysely';
import type { Context } from '../context.ts';
import { type EntityManager, query, transact } from '../database/query.ts';
import type { Settlement } from '../payments/provider.ts';
import type { CheckoutRow } from './checkout.ts';

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
export type Superseded = Pick<CheckoutRow, 'session_id'>;

export const giveUpOpenCheckouts = (em: EntityManager, { subscription_id }: Pick<CheckoutRow, 'subscription_id'>) =>
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
export async function markPaid(em: EntityManager, checkout: CheckoutRow, sessionId: string | null): Promise<boolean> {
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
