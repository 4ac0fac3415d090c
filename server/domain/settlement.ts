import type { Context } from '../context.ts';
import { NOW } from '../database/moment.ts';
import { type Db, transact } from '../database/query.ts';
import type { RowChanges } from '../database/tables.ts';
import type { Session, Settlement } from '../payments/provider.ts';
import { type CheckoutRow, hasReference, type LockedCheckout, lockCheckout, OPEN } from './checkoutRow.ts';
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
      await db
        .updateTable('checkouts')
        .set({ status: outcome, updated_at: NOW })
        .where('id', '=', checkout.id)
        .where('status', '=', 'open')
        .execute();
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
  const isOtherAttempt = attempt !== null && provider_subscription_id !== null && attempt !== provider_subscription_id;
  await db
    .updateTable('checkouts')
    .set({
      session_id,
      provider_subscription_id: provider_subscription_id ?? undefined,
      ...(isOtherAttempt && NO_TROUBLE),
    })
    .where('id', '=', id)
    .execute();
  await setFlag(db, { id }, 'renewed', at);
}

/** A checkout of which no failed renewal, dispute or end is known. */
const NO_TROUBLE = {
  ended_at: null,
  is_past_due: false,
  past_due_changed_at: null,
  is_disputed: false,
  disputed_changed_at: null,
} satisfies RowChanges<'checkouts'>;

/** What the provider calls a checkout that was given up; null if it does not know of it. */
export type Superseded = Pick<CheckoutRow, 'session_id'>;

export const giveUpOpenCheckouts = (
  db: Db,
  { subscription_id }: Pick<CheckoutRow, 'subscription_id'>,
): Promise<Superseded[]> =>
  db
    .updateTable('checkouts')
    .set({ status: 'cancelled', updated_at: NOW })
    .where('subscription_id', '=', subscription_id)
    .where('status', '=', OPEN)
    .returning('session_id')
    .execute();

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
  await db.updateTable('checkouts').set({ status: 'paid', updated_at: NOW }).where('id', '=', checkout.id).execute();
  await followCheckouts(db, checkout);
}
