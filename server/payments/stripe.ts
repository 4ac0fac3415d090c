import { Stripe } from 'stripe';
import { badRequest } from '../../shared/errors.ts';
import type { Order, PaymentProvider } from './provider.ts';
import { readEvent } from './stripeEvent.ts';

type StripeKeys = { secretKey: string; webhookSecret: string };

/** Payments on Stripe's hosted pages, confirmed by signed notifications. */
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
    cancel: async (subscriptionId) => {
      await stripe.subscriptions.cancel(subscriptionId).catch((error) => {
        // It was already cancelled.
        if (error.code !== 'resource_missing') throw error;
      });
    },
    notifications: {
      signatureHeader: 'stripe-signature',
      read: (body, signature) => readEvent(stripe, verify(stripe, body, signature, webhookSecret)),
    },
  };
}

function verify(stripe: Stripe, body: Buffer, signature: string, secret: string): Stripe.Event {
  try {
    return stripe.webhooks.constructEvent(body, signature, secret);
  } catch {
    // The library throws different errors, a plain one for an empty signature; all mean that it is invalid.
    throw badRequest('The signature of the notification is invalid.', 'signature_invalid');
  }
}

function sessionOf(order: Order): Stripe.Checkout.SessionCreateParams {
  const metadata = { reference: order.reference };
  return {
    mode: 'subscription',
    client_reference_id: order.reference,
    metadata,
    // Invoices contain it too, so that later events can be matched to the checkout.
    subscription_data: { metadata },
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
    // Another currency would not match the checkout.
    adaptive_pricing: { enabled: false },
    expires_at: order.expiresAtSeconds,
    success_url: order.returnUrl,
    cancel_url: order.returnUrl,
  };
}
