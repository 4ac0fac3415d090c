/** Where a checkout is paid. The whole of what the service asks of a payment provider. */
export type PaymentProvider = {
  name: 'stripe' | 'test';
  /** Opens a checkout; asked again for the same order, it answers the same one. */
  open: (order: Order) => Promise<OpenedCheckout>;
  /** Ends a checkout that nobody should pay any more. */
  close: (sessionId: string) => Promise<void>;
  /** Reads a notification; a signature that is not the provider's is refused. Absent where none are sent. */
  readNotification?: (body: Buffer, signature: string) => Settlement | undefined;
};

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

/** How a checkout ended. */
export type Settlement = { reference: string; session_id: string | null; outcome: 'paid' | 'cancelled' | 'expired' };
