import type { PaymentProvider } from './provider.ts';

/** A checkout without real money: the service's own checkout page has a "pay" button. */
export const testCheckout: PaymentProvider = {
  name: 'test',
  open: async ({ reference, returnUrl }) => ({ session_id: `test_${reference}`, checkout_url: returnUrl }),
  close: async () => {},
};
