import { type Db, transact } from '../../database/query.ts';
import type { RowChanges } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import type { Session, Settlement } from '../../payments/provider.ts';
import type { Context, With } from '../access/context.ts';
import type { WriteContext } from '../event/event.ts';
import { type CheckoutRow, hasReference, type LockedCheckout, lockCheckout, OPEN } from './checkoutRow.ts';
import { type PaymentContext, setFlag, updateSubscription } from './subscriptionEvent.ts';

/**
 * Applies the outcome of a checkout. Repeated notifications change nothing, and neither does an expiry or cancellation of a
 * paid checkout, in any order; a payment counts even if the checkout was cancelled before.
 */
export async function settleCheckout(
  context: PaymentContext & With<'payments'>,
  { reference, session, outcome, at }: Settlement,
): Promise<void> {
  const { log } = context;
  const cancelled = await transact(context.db, async (db) => {
    const checkout = await lockCheckout(db, hasReference(reference));
    if (!checkout) return [];
    const differences = session ? differencesOf(checkout, session) : [];
    if (differences.length > 0) {
      log.error({ checkout: checkout.id, outcome, differences }, 'A payment does not match its checkout: ignored.');
      return [];
    }

    if (checkout.status === 'paid') return [];
    // A test checkout takes no real money, so one that was cancelled in the meantime can reject the payment.
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

    if (session) await storeFirstPayment(db, checkout, session, at);
    await markPaid({ ...context, db }, checkout);
    if (checkout.subscription_status === 'paid' || checkout.subscription_status === 'past_due') {
      log.warn({ checkout: checkout.id }, 'A subscription was paid twice: refund one payment.');
    }
    return cancelOpenCheckouts(db, checkout);
  });
  await closeAtProvider(context, cancelled);
}

/** Without a stored session id (the process ended before the provider responded), reference, amount and currency must match. */
function differencesOf(checkout: CheckoutRow, session: Session): object[] {
  return (['session_id', 'price_cents', 'currency'] as const)
    .filter((field) => checkout[field] !== session[field] && !(field === 'session_id' && checkout.session_id === null))
    .map((field) => ({ field, expected: checkout[field], received: session[field] }));
}

/** Stores the provider's ids and the first payment. Resets what was recorded for an earlier attempt to pay. */
async function storeFirstPayment(
  db: Db,
  { id, provider_subscription_id: earlierId }: LockedCheckout,
  { session_id, provider_subscription_id }: Session,
  at: Date,
): Promise<void> {
  const isOtherAttempt =
    earlierId !== null && provider_subscription_id !== null && earlierId !== provider_subscription_id;
  await db
    .updateTable('checkouts')
    .set({
      session_id,
      provider_subscription_id: provider_subscription_id ?? undefined,
      ...(isOtherAttempt && NO_PAYMENT_PROBLEMS),
    })
    .where('id', '=', id)
    .execute();
  await setFlag(db, { id }, 'renewed', at);
}

/** The state without failed renewal, dispute or end. */
const NO_PAYMENT_PROBLEMS = {
  ended_at: null,
  is_past_due: false,
  past_due_changed_at: null,
  is_disputed: false,
  disputed_changed_at: null,
} satisfies RowChanges<'checkouts'>;

/** The provider's id of a cancelled checkout; null if it was never opened there. */
export type CancelledCheckout = Pick<CheckoutRow, 'session_id'>;

export const cancelOpenCheckouts = (
  db: Db,
  { subscription_id }: Pick<CheckoutRow, 'subscription_id'>,
): Promise<CancelledCheckout[]> =>
  db
    .updateTable('checkouts')
    .set({ status: 'cancelled', updated_at: NOW })
    .where('subscription_id', '=', subscription_id)
    .where('status', '=', OPEN)
    .returning('session_id')
    .execute();

/** Call it outside transactions. Failures are logged for the operator. */
export async function closeAtProvider(
  { services: { payments }, log }: Pick<Context, 'log'> & With<'payments'>,
  cancelled: CancelledCheckout[],
): Promise<void> {
  for (const { session_id } of cancelled) {
    if (session_id === null) continue;
    await payments?.close(session_id).catch((error) => log.warn(error, 'A checkout could not be closed.'));
  }
}

/** A subscription has one free plan at most, which ends when another plan begins. */
export async function markPaid(context: WriteContext, checkout: CheckoutRow): Promise<void> {
  const { db } = context;
  await db
    .updateTable('checkouts')
    .set({ ended_at: NOW, updated_at: NOW })
    .where('subscription_id', '=', checkout.subscription_id)
    .where('status', '=', 'paid')
    .where('price_cents', '=', 0)
    .where('ended_at', 'is', null)
    .execute();
  await db.updateTable('checkouts').set({ status: 'paid', updated_at: NOW }).where('id', '=', checkout.id).execute();
  await updateSubscription(context, checkout);
}
