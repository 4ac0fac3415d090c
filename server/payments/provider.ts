/** The interface to a payment provider. */
export type PaymentProvider = {
  /** Also the end of the path for its notifications. */
  name: 'stripe' | 'test';
  /** Opens a checkout; idempotent for the same order. */
  open: (order: Order) => Promise<OpenedCheckout>;
  /** Closes a checkout, so that it can't be paid any more. */
  close: (sessionId: string) => Promise<void>;
  /** Cancels a subscription; does nothing if it has already ended. */
  cancel?: (subscriptionId: string) => Promise<void>;
  /** Undefined if the provider sends none. */
  notifications?: {
    /** In lower case. */
    signatureHeader: string;
    /** Verifies and parses a notification; undefined if there is nothing to do. */
    read: (body: Buffer, signature: string) => Promise<Notice | undefined>;
  };
};

export const PAYMENTS_NOT_SET_UP =
  'Payments are not set up: only free plans can be activated. Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET, or TEST_CHECKOUT=on to try it without real money.';

export type Order = {
  reference: string;
  product: string;
  plan: string;
  period: 'month' | 'year';
  price_cents: number;
  currency: string;
  expiresAtSeconds: number;
  /** The page to return to after the payment. */
  returnUrl: string;
};

export type OpenedCheckout = { session_id: string; checkout_url: string };

/** A parsed notification. `at` is the provider's timestamp of the event. */
export type Notice = ({ about: 'checkout' } & Settlement) | ({ about: 'subscription' } & SubscriptionEvent);

/** The outcome of a checkout. */
export type Settlement = {
  reference: string;
  outcome: 'paid' | 'cancelled' | 'expired';
  at: Date;
  /** The paid session according to the provider; undefined for the test checkout. */
  session?: Session;
};

export type Session = {
  session_id: string;
  price_cents: number | null;
  currency: string | null;
  provider_subscription_id: string | null;
};

/** An event of a subscription after its checkout. */
export type SubscriptionEvent = {
  provider_subscription_id: string;
  /** The reference of the checkout, from the metadata of the order. */
  reference: string | undefined;
  change: 'renewed' | 'renewal_failed' | 'disputed' | 'dispute_won' | 'ended';
  at: Date;
  /** Whether it must be cancelled at the provider, which would otherwise continue to charge. */
  isToBeCancelled?: boolean;
};
