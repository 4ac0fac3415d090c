import type { Stripe } from 'stripe';
import type { Notice, Settlement, SubscriptionEvent } from './provider.ts';

/** Converts an event about one of our checkouts or subscriptions; undefined for all others. */
export async function readEvent(stripe: Stripe, event: Stripe.Event): Promise<Notice | undefined> {
  // From a connected account, whose owner controls the content.
  if (event.account) return undefined;
  const at = new Date(event.created * 1000);

  switch (event.type) {
    case 'checkout.session.completed':
      // A bank transfer, for example, is completed first and paid days later.
      return event.data.object.payment_status === 'unpaid' ? undefined : settled(event.data.object, 'paid', at);
    case 'checkout.session.async_payment_succeeded':
      return settled(event.data.object, 'paid', at);
    case 'checkout.session.async_payment_failed':
      return settled(event.data.object, 'cancelled', at);
    case 'checkout.session.expired':
      return settled(event.data.object, 'expired', at);

    case 'customer.subscription.deleted':
      return changed(ofSubscription(event.data.object), 'ended', at);
    case 'invoice.paid':
      return changed(ofInvoice(event.data.object), 'renewed', at);
    case 'invoice.payment_failed':
      return changed(ofInvoice(event.data.object), 'renewal_failed', at);

    case 'charge.refunded': {
      if (!event.data.object.refunded) return undefined;
      const paid = await findPaid(stripe, event.data.object);
      return paid?.isLatest ? changed(paid, 'ended', at, true) : undefined;
    }
    case 'charge.dispute.created':
    case 'charge.dispute.funds_withdrawn':
      // An inquiry withdraws no funds.
      if (event.data.object.status.startsWith('warning_')) return undefined;
      return changed(await findPaid(stripe, event.data.object), 'disputed', at);
    case 'charge.dispute.closed': {
      const isLost = event.data.object.status === 'lost';
      return changed(await findPaid(stripe, event.data.object), isLost ? 'ended' : 'dispute_won', at, isLost);
    }
    default:
      return undefined;
  }
}

function settled(session: Stripe.Checkout.Session, outcome: Settlement['outcome'], at: Date): Notice | undefined {
  const { id, client_reference_id: reference, amount_total, currency, subscription } = session;
  if (reference === null) return undefined;
  return {
    about: 'checkout',
    reference,
    outcome,
    at,
    session: {
      session_id: id,
      price_cents: amount_total,
      currency: currency?.toUpperCase() ?? null,
      provider_subscription_id: idOf(subscription),
    },
  };
}

type Named = Pick<SubscriptionEvent, 'provider_subscription_id' | 'reference'>;

function changed(
  named: Named | undefined,
  change: SubscriptionEvent['change'],
  at: Date,
  isToBeCancelled = false,
): Notice | undefined {
  if (!named) return undefined;
  const { provider_subscription_id, reference } = named;
  return { about: 'subscription', provider_subscription_id, reference, change, at, isToBeCancelled };
}

const ofSubscription = ({ id, metadata }: Stripe.Subscription): Named => ({
  provider_subscription_id: id,
  reference: metadata?.reference,
});

/** Before Stripe's API version 2025-03-31 it was a field of the invoice itself. */
type OldInvoice = { subscription?: string | null; subscription_details?: { metadata: Stripe.Metadata | null } | null };

function ofInvoice(invoice: Stripe.Invoice & OldInvoice): Named | undefined {
  const details = invoice.parent?.subscription_details;
  const id = idOf(details?.subscription ?? invoice.subscription);
  const metadata = details?.metadata ?? invoice.subscription_details?.metadata;
  return id === null ? undefined : { provider_subscription_id: id, reference: metadata?.reference };
}

/** Finds the subscription of a charge, through Stripe's API, since a charge only has the id of its payment. */
async function findPaid(
  stripe: Stripe,
  { payment_intent }: Pick<Stripe.Charge, 'payment_intent'>,
): Promise<(Named & { isLatest: boolean }) | undefined> {
  const payment = idOf(payment_intent);
  if (payment === null) return undefined;

  const { data } = await stripe.invoicePayments.list({
    payment: { type: 'payment_intent', payment_intent: payment },
    expand: ['data.invoice'],
    limit: 1,
  });
  const invoice = data[0]?.invoice as Stripe.Invoice | undefined;
  const named = invoice && ofInvoice(invoice);
  if (!named) return undefined;

  const subscription = await stripe.subscriptions.retrieve(named.provider_subscription_id);
  return { ...ofSubscription(subscription), isLatest: idOf(subscription.latest_invoice) === invoice.id };
}

const idOf = (object: string | { id: string } | null | undefined): string | null =>
  typeof object === 'object' ? (object?.id ?? null) : (object ?? null);
