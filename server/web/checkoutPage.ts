import type { FastifyInstance, FastifyRequest } from 'fastify';
import { toFailure } from '../../shared/errors.ts';
import type { Services } from '../api/services.ts';
import { logFailure } from '../call/logFailure.ts';
import { type CheckoutView, viewCheckout } from '../domain/billing/checkout.ts';
import { isReference } from '../domain/billing/checkoutRow.ts';
import { settleCheckout } from '../domain/billing/settlement.ts';
import { ignoreBodies } from '../http/body.ts';
import { sendErrorHeaders } from '../http/headers.ts';
import { limitAddresses } from '../http/limitRequests.ts';
import { paymentContext } from '../http/webhook.ts';
import { escapeHtml, HTML, htmlPage } from './htmlPage.ts';

/** The page of a checkout: it shows the order, and people return to it after paying. For the test checkout it also has the "pay" button. */
export async function checkoutPage(scope: FastifyInstance, { database, payments, rateLimit }: Services): Promise<void> {
  limitAddresses(scope, rateLimit);
  scope.setErrorHandler((error, request, reply) => {
    const failure = toFailure(error);
    logFailure(request.log, error, failure);
    sendErrorHeaders(reply, failure);
    return reply
      .code(failure.status)
      .type(HTML)
      .send(layout('Something went wrong', `<p class="lead">${failure.message}</p>`));
  });
  // The forms have no fields.
  ignoreBodies(scope);

  const find = async (request: FastifyRequest) => {
    const { reference } = request.params as { reference: string };
    return isReference(reference) ? viewCheckout(database.db, reference) : undefined;
  };

  scope.get('/:reference', async (request, reply) => {
    const checkout = await find(request);
    reply.type(HTML).header('Cache-Control', 'no-store').header('Referrer-Policy', 'no-referrer');
    if (!checkout) {
      sendErrorHeaders(reply, { reason: 'not_found' });
      return reply.code(404).send(UNKNOWN);
    }
    // Opened before the test checkout was turned off, so it can't be paid any more.
    const isLeftOver = checkout.status === 'open' && checkout.provider === 'test' && payments?.name !== 'test';
    return page(isLeftOver ? { ...checkout, status: 'expired' } : checkout);
  });

  if (payments?.name !== 'test') return;
  for (const [button, outcome] of [
    ['pay', 'paid'],
    ['cancel', 'cancelled'],
  ] as const) {
    scope.post(`/:reference/${button}`, async (request, reply) => {
      const checkout = await find(request);
      if (checkout?.provider === 'test' && checkout.status === 'open') {
        const { reference } = checkout;
        const settlement = { reference, outcome, at: new Date() };
        await settleCheckout({ ...paymentContext(request, database), services: { payments } }, settlement);
      }
      const { reference } = request.params as { reference: string };
      return reply.redirect(`../${isReference(reference) ? reference : ''}`, 303);
    });
  }
}

function page(checkout: CheckoutView): string {
  const { product, plan, period, status } = checkout;
  const { title, text, actions = '' } = STATES[status](checkout);
  return layout(
    title,
    `<p class="lead">${text}</p>
<dl class="receipt">
<dt>Product</dt><dd>${escapeHtml(product)}</dd>
<dt>Plan</dt><dd>${escapeHtml(plan)}</dd>
<dt>Period</dt><dd>1 ${period}</dd>
<dt>Price</dt><dd class="price">${priceOf(checkout)} <small>for each ${period}</small></dd>
</dl>
${actions}`,
  );
}

type State = { title: string; text: string; actions?: string };

const STATES: Record<CheckoutView['status'], (checkout: CheckoutView) => State> = {
  open: (checkout) =>
    checkout.provider === 'test'
      ? {
          title: 'Checkout',
          text: 'This is a test checkout: no money is taken.',
          actions: buttonsOf(checkout),
        }
      : {
          title: 'Not paid yet',
          text: 'The payment has not arrived. If you have just paid, look again in a minute.',
          actions: `<p><a class="button" href="${escapeHtml(checkout.checkout_url ?? '')}">Back to the payment</a></p>`,
        },
  free: () => ({ title: 'Your plan is active', text: 'There is nothing to pay.' }),
  paid: () => ({ title: 'Payment received', text: 'Your subscription is active. You can close this page.' }),
  past_due: () => ({
    title: 'A payment is due',
    text: 'A later payment failed or is disputed. Settle it with the payment provider.',
  }),
  ended: () => ({
    title: 'Subscription ended',
    text: 'This subscription has ended. Start the upgrade again when you like.',
  }),
  cancelled: () => ({ title: 'Cancelled', text: 'Nothing was paid. Start the upgrade again when you like.' }),
  expired: () => ({ title: 'Checkout expired', text: 'This checkout has expired. Start the upgrade again.' }),
};

const buttonsOf = ({ reference, ...checkout }: CheckoutView) => `<div class="actions">
<form method="post" action="${reference}/pay"><button class="button">Pay ${priceOf(checkout)}</button></form>
<form method="post" action="${reference}/cancel"><button class="button quiet">Cancel</button></form>
</div>`;

function priceOf({ price_cents, currency }: Pick<CheckoutView, 'price_cents' | 'currency'>): string {
  return escapeHtml(new Intl.NumberFormat('en', { style: 'currency', currency }).format(price_cents / 100));
}

const layout = (title: string, content: string) =>
  htmlPage(title, `<main class="narrow">\n<h1>${title}</h1>\n${content}\n</main>`);

const UNKNOWN = layout(
  'No such checkout',
  '<p class="lead">The address is incomplete, or belongs to another service.</p>',
);
