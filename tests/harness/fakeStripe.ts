import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Stripe } from 'stripe';
import type { PaymentProvider } from '../../server/payments/provider.ts';
import { makeStripe } from '../../server/payments/stripe.ts';

/** As much of Stripe's HTTP interface as the service uses. What it does on request is fixed by Stripe, and not by us. */
export type FakeStripe = {
  provider: PaymentProvider;
  /** The sessions that were opened, as they were asked for. */
  sessions: { id: string; idempotencyKey: string; sent: URLSearchParams; isExpired: boolean }[];
  /** While true, every request fails as Stripe does when it is down. */
  isDown: boolean;
  /** A notification, signed as Stripe signs it. */
  notification: (
    type: string,
    object: object,
    secret?: string,
    timestamp?: number,
  ) => { body: string; signature: string };
};

const WEBHOOK_SECRET = 'whsec_for_tests';

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

    const expiring = /^\/v1\/checkout\/sessions\/(\w+)\/expire$/.exec(request.url!)?.[1];
    if (expiring) {
      const session = fake.sessions.find(({ id }) => id === expiring);
      if (session) session.isExpired = true;
      return answer(session ? 200 : 404, session ? { id: expiring, status: 'expired' } : { error: {} });
    }
    if (request.url !== '/v1/checkout/sessions') return answer(404, { error: { message: 'Unknown.' } });

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
    notification: (type, object, secret = WEBHOOK_SECRET, timestamp) => {
      const body = JSON.stringify({ id: `evt_${randomUUID()}`, object: 'event', type, data: { object } });
      return { body, signature: signer.webhooks.generateTestHeaderString({ payload: body, secret, timestamp }) };
    },
  };
  return fake;
}

const signer = new Stripe('sk_test_signer');
