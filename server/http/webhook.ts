import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { badRequest } from '../../shared/errors.ts';
import { LARGEST_BODY_BYTES } from '../../shared/limits.ts';
import type { Services } from '../api/services.ts';
import { settleCheckout } from '../domain/billing/settlement.ts';
import { applySubscriptionEvent, type PaymentContext } from '../domain/billing/subscriptionEvent.ts';
import { clientAddress } from '../runtime/address.ts';
import { limitBadRequests } from './limitRequests.ts';

/** Receives the payment provider's notifications. The signature covers the raw body, so it is not parsed. */
export async function paymentWebhook(
  scope: FastifyInstance,
  { database, payments, rateLimit }: Services,
): Promise<void> {
  if (!payments?.notifications) return;
  const { signatureHeader, read } = payments.notifications;
  limitBadRequests(scope, rateLimit);

  scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: LARGEST_BODY_BYTES }, (_request, body, done) =>
    done(null, body),
  );

  const unsigned = () => badRequest('The notification is not signed.', 'signature_invalid');
  // Before the body is read.
  const onRequest: onRequestHookHandler = ({ headers }, _reply, done) =>
    done(headers[signatureHeader] === undefined ? unsigned() : undefined);
  scope.post(`/${payments.name}`, { onRequest }, async (request) => {
    const { body, headers } = request;
    const signature = headers[signatureHeader];
    if (!Buffer.isBuffer(body) || typeof signature !== 'string') throw unsigned();
    const notice = await read(body, signature);
    const context = { ...paymentContext(request, database), services: { payments } };
    if (notice?.about === 'checkout') await settleCheckout(context, notice);
    if (notice?.about === 'subscription') await applySubscriptionEvent(context, notice);
    return { received: true };
  });
}

/** The context of what a payment changes: nobody is signed in. */
export const paymentContext = (request: FastifyRequest, { db }: Services['database']): PaymentContext => ({
  db,
  log: request.log,
  origin: { surface: 'payment', requestId: request.id, address: clientAddress(request), serviceUrl: '' },
  caller: undefined,
});
