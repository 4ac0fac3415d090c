/** Where a checkout is paid. The whole of what the service asks of a payment provider. */
export type PaymentProvider = {
  name: 'stripe' | 'test';
  /** Opens a checkout; asked again for the same order, it answers the same one. */
  open: (order: Order) => Promise<OpenedCheckout>;
  /** Ends a checkout that nobody should pay any more. */
  close: (sessionId: string) => Promise<void>;
  /** Charges nothing more for a subscription; one that has ended already stays so. */
  cancel?: (subscriptionId: string) => Promise<void>;
  /** Reads a notification; a signature that is not the provider's is refused. Absent where none are sent. */
  readNotification?: (body: Buffer, signature: string) => Promise<Notice | undefined>;
};

export const PAYMENTS_NOT_SET_UP =
  'Payments are not set up: only plans that cost nothing can be activated. Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET, or TEST_CHECKOUT=on to try it without money.';

export type Order = {
  reference: string;
  product: string;
  plan: string;
  period: 'month' | 'year';
  price_cents: number;
  currency: string;
  expiresAtSeconds: number;
  /** Where to send people afterwards. */
  returnUrl: string;
};

export type OpenedCheckout = { session_id: string; checkout_url: string };

/** What a notification says. `at` is when it happened, by the provider's clock. */
export type Notice = ({ about: 'checkout' } & Settlement) | ({ about: 'subscription' } & SubscriptionNews);

/** How a checkout ended. */
export type Settlement = {
  reference: string;
  outcome: 'paid' | 'cancelled' | 'expired';
  at: Date;
  /** What the provider says was paid for. Absent on the test checkout, which nobody else can speak for. */
  session?: Session;
};

export type Session = {
  session_id: string;
  price_cents: number | null;
  currency: string | null;
  provider_subscription_id: string | null;
};

/** What became of a subscription that a checkout began. */
export type SubscriptionNews = {
  provider_subscription_id: string;
  /** Of the checkout, as it was given to the provider with the order. */
  reference: string | undefined;
  change: 'renewed' | 'renewal_failed' | 'disputed' | 'dispute_won' | 'ended';
  at: Date;
  /** The provider goes on charging for it unless it is told not to. */
  isToBeCancelled?: boolean;
};
