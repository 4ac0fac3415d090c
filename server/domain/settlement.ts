import { sql } from 'kysely';
import type { Context } from '../context.ts';
import { type Db, query, transact } from '../database/query.ts';
import type { Session, Settlement } from '../payments/provider.ts';
import { type CheckoutRow, hasReference, type LockedCheckout, lockCheckout } from './checkoutRow.ts';
import { followCheckouts, setFlag } from './standing.ts';

/**
 * Carries out how a checkout ended. The same again changes nothing, and neither does the end of one that was paid, in
 * whatever order they come; a payment counts even if the checkout had been given up.
 */
export async function settleCheckout(
  { db, payments, log }: Pick<Context, 'db' | 'payments' | 'log'>,
  { reference, session, outcome, at }: Settlement,
): Promise<void> {
  const superseded = await transact(db, async (db) => {
    const checkout = await lockCheckout(db, hasReference(reference));
    if (!checkout) return [];
    const differences = session ? differencesOf(checkout, session) : [];
    if (differences.length > 0) {
      log.error({ checkout: checkout.id, outcome, differences }, 'A payment does not match its checkout: not counted.');
      return [];
    }

    if (checkout.status === 'paid') return [];
    // On the test checkout nobody has paid before this: one that was given up meanwhile takes no payment.
    if (checkout.provider === 'test' && checkout.status !== 'open') return [];
    if (outcome !== 'paid') {
      await query(
        db,
        sql`update checkouts set status = ${outcome}, updated_at = now() where id = ${checkout.id} and status = 'open'`,
      );
      return [];
    }

    if (session) await startCharging(db, checkout, session, at);
    await markPaid(db, checkout);
    if (checkout.subscription_status === 'paid' || checkout.subscription_status === 'past_due') {
      log.warn({ checkout: checkout.id }, 'A subscription was paid for twice: give one payment back.');
    }
    return giveUpOpenCheckouts(db, checkout);
  });
  await closeAtProvider({ payments, log }, superseded);
}

/** Where the process ended before it was told the name of the session, reference, amount and currency decide. */
function differencesOf(checkout: CheckoutRow, session: Session): object[] {
  return (['session_id', 'price_cents', 'currency'] as const)
    .filter((field) => checkout[field] !== session[field] && !(field === 'session_id' && checkout.session_id === null))
    .map((field) => ({ field, expected: checkout[field], received: session[field] }));
}

/** Keeps the provider's names, and that the first payment is made. What was heard of an earlier attempt to pay no longer counts. */
async function startCharging(
  db: Db,
  { id, provider_subscription_id: attempt }: LockedCheckout,
  { session_id, provider_subscription_id }: Session,
  at: Date,
): Promise<void> {
  await query(
    db,
    sql`
      update checkouts set session_id = ${session_id},
        provider_subscription_id = coalesce(${provider_subscription_id}::text, provider_subscription_id)
      where id = ${id}`,
  );
  if (attempt !== null && provider_subscription_id !== null && attempt !== provider_subscription_id) {
    await query(
      db,
      sql`
        update checkouts set ended_at = null, is_past_due = false, past_due_changed_at = null, is_disputed = false,
          disputed_changed_at = null
        where id = ${id}`,
    );
  }
  await setFlag(db, { id }, 'renewed', at);
}

/** What the provider calls a checkout that was given up; null if it does not know of it. */
export type Superseded = Pick<CheckoutRow, 'session_id'>;

export const giveUpOpenCheckouts = (db: Db, { subscription_id }: Pick<CheckoutRow, 'subscription_id'>) =>
  query(
    db,
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
    await payments?.close(session_id).catch((error) => log.warn(error, 'A checkout could not be closed.'));
  }
}

export async function markPaid(db: Db, checkout: CheckoutRow): Promise<void> {
  await query(db, sql`update checkouts set status = 'paid', updated_at = now() where id = ${checkout.id}`);
  await followCheckouts(db, checkout);
}
