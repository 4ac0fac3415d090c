import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Stripe } from 'stripe';
import type { PaymentProvider } from '../../server/payments/provider.ts';
import { makeStripe } from '../../server/payments/stripe.ts';

/** As much of Stripe's HTTP API as the service uses. */
type FakeStripe = {
  provider: PaymentProvider;
  /** The checkout sessions, as they were requested. */
  sessions: { id: string; idempotencyKey: string; sent: URLSearchParams; isExpired: boolean }[];
  /** While true, every request fails, as when Stripe is down. */
  isDown: boolean;
  /** Subscriptions by id. */
  subscriptions: Map<string, { reference?: string; latestInvoice: string; isCancelled: boolean }>;
  /** What each payment was for. */
  payments: Map<string, { invoice: string; subscription: string }>;
  /** A webhook request, signed as Stripe signs it. */
  notification: (type: string, object: object, more?: NotificationOptions) => { body: string; signature: string };
};

export type NotificationOptions = {
  secret?: string;
  /** When it was signed, and when it happened, in Unix seconds. */
  timestamp?: number;
  created?: number;
  /** A connected account. */
  account?: string;
};

const WEBHOOK_SECRET = 'whsec_for_tests';

/** When the first event happened, in Unix seconds. */
export const NOW = 1_800_000_000;

export async function givenFakeStripe(): Promise<FakeStripe> {
  const byKey = new Map<string, object>();
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const sent = new URLSearchParams(await text(request));
    if (fake.isDown) return answer(500, { error: { type: 'api_error', message: 'Down.' } });
    if (request.headers.authorization !== 'Bearer sk_test_key') {
      return answer(401, { error: { type: 'invalid_request_error', message: 'No such key.' } });
    }

    const { pathname, searchParams } = new URL(request.url!, 'http://stripe.test');
    const expiring = /^\/v1\/checkout\/sessions\/(\w+)\/expire$/.exec(pathname)?.[1];
    if (expiring) {
      const session = fake.sessions.find(({ id }) => id === expiring);
      if (!session) return answer(404, { error: {} });
      session.isExpired = true;
      return answer(200, { id: expiring, status: 'expired' });
    }
    if (pathname === '/v1/invoice_payments') {
      const payment = fake.payments.get(searchParams.get('payment[payment_intent]') ?? '');
      const details = payment && { subscription: payment.subscription, metadata: null };
      const invoice = payment && { id: payment.invoice, object: 'invoice', parent: { subscription_details: details } };
      return answer(200, { object: 'list', has_more: false, data: invoice ? [{ id: 'inpay_1', invoice }] : [] });
    }
    const named = /^\/v1\/subscriptions\/(\w+)$/.exec(pathname)?.[1];
    if (named) {
      const subscription = fake.subscriptions.get(named);
      if (!subscription || (request.method === 'DELETE' && subscription.isCancelled)) {
        return answer(404, { error: { type: 'invalid_request_error', code: 'resource_missing', message: 'None.' } });
      }
      if (request.method === 'DELETE') subscription.isCancelled = true;
      const { reference, latestInvoice } = subscription;
      return answer(200, { id: named, object: 'subscription', metadata: { reference }, latest_invoice: latestInvoice });
    }
    if (pathname !== '/v1/checkout/sessions') return answer(404, { error: { message: 'Unknown.' } });

    const idempotencyKey = String(request.headers['idempotency-key']);
    const id = `cs_test_${randomUUID().replaceAll('-', '')}`;
    if (!byKey.has(idempotencyKey)) {
      fake.sessions.push({ id, idempotencyKey, sent, isExpired: false });
      byKey.set(idempotencyKey, { id, object: 'checkout.session', url: `https://checkout.stripe.test/${id}` });
    }
    return answer(200, byKey.get(idempotencyKey)!);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();

  const { port } = server.address() as AddressInfo;
  const connection = { host: '127.0.0.1', port, protocol: 'http', maxNetworkRetries: 0 } as const;
  const fake: FakeStripe = {
    provider: makeStripe({ secretKey: 'sk_test_key', webhookSecret: WEBHOOK_SECRET }, connection),
    sessions: [],
    isDown: false,
    subscriptions: new Map(),
    payments: new Map(),
    notification: (type, object, { secret = WEBHOOK_SECRET, timestamp, created = NOW, account } = {}) => {
      const event = { id: `evt_${randomUUID()}`, object: 'event', type, created, account, data: { object } };
      const body = JSON.stringify(event);
      return { body, signature: signer.webhooks.generateTestHeaderString({ payload: body, secret, timestamp }) };
    },
  };
  return fake;
}

const signer = new Stripe('sk_test_signer');
