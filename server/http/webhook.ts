import type { FastifyInstance } from 'fastify';
import { isReference } from '../domain/checkout.ts';
import { settleCheckout } from '../domain/settlement.ts';
import { badRequest } from '../errors.ts';
import type { Services } from '../services.ts';
import { LARGEST_BODY_BYTES } from './body.ts';

/** Where the payment provider tells us how checkouts ended. Its signature covers the bytes of the body, so they stay as they are. */
export async function paymentWebhook(scope: FastifyInstance, { database, payments }: Services): Promise<void> {
  const { readNotification } = payments;
  if (!readNotification) return;

  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: LARGEST_BODY_BYTES }, (_request, body, done) =>
    done(null, body),
  );

  scope.post(`/${payments.name}`, async (request) => {
    const { body, headers, log } = request;
    const signature = headers['stripe-signature'];
    if (!Buffer.isBuffer(body) || typeof signature !== 'string') throw badRequest('The notification is not signed.');
    const settlement = readNotification(body, signature);
    // Another reference is of somebody else who uses the same account at the provider.
    if (settlement && isReference(settlement.reference)) {
      await settleCheckout({ em: database.fork(), payments, log }, settlement);
    }
    return { received: true };
  });
}
