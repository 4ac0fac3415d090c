import type { PaymentProvider } from './provider.ts';

/** Takes no money: the page of the checkout, which this service serves itself, has a button that stands for the payment. */
export const testCheckout: PaymentProvider = {
  name: 'test',
  open: async ({ reference, returnUrl }) => ({ session_id: `test_${reference}`, checkout_url: returnUrl }),
  close: async () => {},
};
