import type { Settings } from '../runtime/env.ts';
import type { PaymentProvider } from './provider.ts';
import { testCheckout } from './testCheckout.ts';

/** The payment provider of the settings; undefined without payments. */
export async function choosePayments(settings: Settings): Promise<PaymentProvider | undefined> {
  const { STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET, TEST_CHECKOUT, DATABASE_URL } = settings;
  if (STRIPE_SECRET_KEY === undefined || STRIPE_WEBHOOK_SECRET === undefined) {
    // With DATABASE_URL the test checkout must be enabled explicitly, so that forgotten Stripe keys do not give plans away.
    return (TEST_CHECKOUT ?? DATABASE_URL === undefined) ? testCheckout : undefined;
  }
  const { makeStripe } = await import('./stripe.ts');
  return makeStripe({ secretKey: STRIPE_SECRET_KEY, webhookSecret: STRIPE_WEBHOOK_SECRET });
}
