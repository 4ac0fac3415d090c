import { Stripe } from 'stripe';
import { badRequest } from '../errors.ts';
import type { Order, PaymentProvider, Settlement } from './provider.ts';

type StripeKeys = { secretKey: string; webhookSecret: string };

/** Stripe's own pages take the money; its signed notifications say when. */
export function makeStripe(
  { secretKey, webhookSecret }: StripeKeys,
  connection: Stripe.StripeConfig = {},
): PaymentProvider {
  const stripe = new Stripe(secretKey, { timeout: 8_000, maxNetworkRetries: 1, telemetry: false, ...connection });
  return {
    name: 'stripe',
    open: async (order) => {
      const { id, url } = await stripe.checkout.sessions.create(sessionOf(order), {
        idempotencyKey: `checkout-${order.reference}`,
      });
      if (!url) throw new Error(`Stripe opened the checkout ${id} without an address.`);
      return { session_id: id, checkout_url: url };
    },
    close: async (sessionId) => {
      await stripe.checkout.sessions.expire(sessionId);
    },
    readNotification: (body, signature) => {
      try {
        return settlementOf(stripe.webhooks.constructEvent(body, signature, webhookSecret));
      } catch (error) {
        if (error instanceof Stripe.errors.StripeSignatureVerificationError || error instanceof SyntaxError) {
          throw badRequest('The signature does not fit the notification.');
        }
        throw error;
      }
    },
  };
}

function sessionOf(order: Order): Stripe.Checkout.SessionCreateParams {
  return {
    mode: 'subscription',
    client_reference_id: order.reference,
    line_items: [
      {
        quantity: 1,
        price_data: {
          currency: order.currency.toLowerCase(),
          unit_amount: order.price_cents,
          recurring: { interval: order.period },
          product_data: { name: `${order.product}: ${order.plan}` },
        },
      },
    ],
    expires_at: order.expiresAtSeconds,
    success_url: order.returnUrl,
    cancel_url: order.returnUrl,
  };
}

/** What an event says of one of our checkouts; most events say nothing of any. */
function settlementOf(event: Stripe.Event): Settlement | undefined {
  switch (event.type) {
    case 'checkout.session.completed':
      // A bank transfer, for one, is completed first and paid days later.
      return event.data.object.payment_status === 'unpaid' ? undefined : settlement(event.data.object, 'paid');
    case 'checkout.session.async_payment_succeeded':
      return settlement(event.data.object, 'paid');
    case 'checkout.session.async_payment_failed':
      return settlement(event.data.object, 'cancelled');
    case 'checkout.session.expired':
      return settlement(event.data.object, 'expired');
    default:
      return undefined;
  }
}

function settlement(session: Stripe.Checkout.Session, outcome: Settlement['outcome']): Settlement | undefined {
  const { id, client_reference_id } = session;
  return client_reference_id === null ? undefined : { reference: client_reference_id, session_id: id, outcome };
}
