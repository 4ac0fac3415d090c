import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { testService } from '../harness/service.ts';
import { COMPLETED, givenStripe } from '../harness/stripeService.ts';
import { testDb } from '../harness/world.ts';

const EXPIRED = 'checkout.session.expired';

describe('a checkout at Stripe', () => {
  it('is created with price, period, reference and return URL', async () => {
    const { stripe, upgrade, checkout } = await givenStripe();

    const { body } = await upgrade('year');

    const [{ id, sent, idempotencyKey }] = stripe.sessions as [(typeof stripe.sessions)[0]];
    const { reference } = await checkout();
    expect(body.data).toMatchObject({ session_id: id, checkout_url: `https://checkout.stripe.test/${id}` });
    expect(idempotencyKey).toBe(`checkout-${reference}`);
    expect(Object.fromEntries(sent)).toMatchObject({
      mode: 'subscription',
      client_reference_id: reference,
      'line_items[0][price_data][unit_amount]': '19000',
      'line_items[0][price_data][currency]': 'eur',
      'line_items[0][price_data][recurring][interval]': 'year',
      'metadata[reference]': reference,
      'subscription_data[metadata][reference]': reference,
      'adaptive_pricing[enabled]': 'false',
      success_url: `https://boards.test/checkout/${reference}`,
    });
  });

  it('is created once for ten concurrent calls, and returned again while it is open', async () => {
    const { stripe, upgrade } = await givenStripe();

    const answers = await Promise.all(Array.from({ length: 10 }, () => upgrade()));
    answers.push(await upgrade());

    expect(new Set(answers.map(({ body }) => body.data.session_id)).size).toBe(1);
    expect(stripe.sessions).toHaveLength(1);
  });

  it('is not created twice if the process ended before it stored the answer of Stripe', async () => {
    const { stripe, id, upgrade } = await givenStripe();
    const first = await upgrade();
    await query(
      await testDb(),
      sql`update checkouts set session_id = null, checkout_url = null where subscription_id = ${id}`,
    );

    const again = await upgrade();

    expect(again.body).toEqual(first.body);
    expect(stripe.sessions).toHaveLength(1);
  });

  it('500 while Stripe is down, nothing changes, and the next call works', async () => {
    const { stripe, upgrade, subscription } = await givenStripe();
    const before = await subscription();
    stripe.isDown = true;

    const answers = await Promise.all([upgrade(), upgrade(), upgrade()]);

    for (const { status, body } of answers) {
      expect(status).toBe(500);
      expect(body).toEqual({ error: true, message: 'Something went wrong on our side. Try again later.', data: [] });
    }
    expect(await subscription()).toEqual(before);
    stripe.isDown = false;
    expect((await upgrade()).status).toBe(200);
    expect(stripe.sessions).toHaveLength(1);
  });

  it('has a page that says that it is not paid yet, and 404 for the pay button of the test checkout', async () => {
    const { service, upgrade, checkout, subscription } = await givenStripe();
    await upgrade();
    const { reference, checkout_url } = await checkout();

    const page = await (await fetch(`${service.url}/checkout/${reference}`)).text();
    const pay = await fetch(`${service.url}/checkout/${reference}/pay`, { method: 'POST' });

    expect(page).toContain('Not paid yet');
    expect(page).toContain(checkout_url);
    expect(pay.status).toBe(404);
    expect(await subscription()).toMatchObject({ status: 'trial' });
  });
});

describe('POST /webhooks/stripe', () => {
  it('marks the subscription as paid; a repeated notification changes nothing', async () => {
    const { stripe, upgrade, notify, sessionOf, subscription, checkout } = await givenStripe();
    await upgrade();
    const notification = stripe.notification(COMPLETED, await sessionOf());

    const answer = await notify(notification);
    const paid = await subscription();
    await Promise.all([notify(notification), notify(notification)]);

    expect(answer.status).toBe(200);
    expect(paid).toMatchObject({ status: 'paid', plan_id: (await checkout()).plan_id });
    expect(await subscription()).toEqual(paid);
  });

  it('400 for a wrong, old or missing signature, and nothing changes', async () => {
    const { stripe, upgrade, notify, sessionOf, subscription } = await givenStripe();
    await upgrade();
    const genuine = stripe.notification(COMPLETED, await sessionOf());
    const hourAgo = Math.floor(Date.now() / 1000) - 3600;
    const refused = [
      stripe.notification(COMPLETED, await sessionOf(), { secret: 'whsec_of_somebody_else' }),
      stripe.notification(COMPLETED, await sessionOf(), { timestamp: hourAgo }),
      { ...genuine, body: genuine.body.replace('"payment_status"', ' "payment_status"') },
      { ...genuine, signature: 'nonsense' },
      { ...genuine, signature: 't=1,v1=' },
      { body: genuine.body },
      { body: '', signature: genuine.signature },
    ];

    for (const notification of refused) {
      const answer = await notify(notification);
      expect(answer.status).toBe(400);
      expect(await answer.json()).toEqual({ error: true, message: expect.any(String), data: [] });
    }
    expect(await subscription()).toMatchObject({ status: 'trial' });
  });

  it('400, without an error in the log, for a body that is too large or of another type', async () => {
    const { service } = await givenStripe();
    const post = (body: string, type: string) =>
      fetch(`${service.url}/webhooks/stripe`, { method: 'POST', headers: { 'content-type': type }, body });

    expect((await post('x'.repeat(1024 * 1024 + 1), 'application/json')).status).toBe(400);
    expect((await post('{}', 'nonsense')).status).toBe(400);
    expect(service.logged.filter(({ level }) => level === 50)).toEqual([]);
  });

  it('429 with Retry-After if the lock on the subscription times out', async () => {
    const { stripe, service, upgrade, notify, sessionOf } = await givenStripe();
    await upgrade();
    const notification = stripe.notification(COMPLETED, await sessionOf());
    const { database } = service;
    Object.defineProperty(database, 'db', {
      get: () => {
        throw Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
      },
    });

    const answer = await notify(notification);

    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe('1');
  });

  it('marks a completed but unpaid checkout as paid only when the payment succeeds', async () => {
    const { stripe, upgrade, notify, sessionOf, subscription } = await givenStripe();
    await upgrade();

    await notify(stripe.notification(COMPLETED, await sessionOf({ payment_status: 'unpaid' })));
    expect(await subscription()).toMatchObject({ status: 'trial' });
    await notify(stripe.notification('checkout.session.async_payment_succeeded', await sessionOf()));

    expect(await subscription()).toMatchObject({ status: 'paid' });
  });

  it('counts a payment even if notifications arrive out of order', async () => {
    const { stripe, upgrade, notify, sessionOf, subscription, checkout } = await givenStripe();
    await upgrade();

    await notify(stripe.notification(EXPIRED, await sessionOf()));
    expect(await checkout()).toMatchObject({ status: 'expired' });
    await notify(stripe.notification(COMPLETED, await sessionOf()));
    await notify(stripe.notification(EXPIRED, await sessionOf()));

    expect(await subscription()).toMatchObject({ status: 'paid' });
    expect(await checkout()).toMatchObject({ status: 'paid' });
  });

  it('counts a payment that arrives before the session id is stored', async () => {
    const { stripe, upgrade, notify, sessionOf, subscription, checkout } = await givenStripe();
    await upgrade();
    const session = await sessionOf();
    await query(
      await testDb(),
      sql`update checkouts set session_id = null, checkout_url = null where reference = ${session.client_reference_id}`,
    );

    await notify(stripe.notification(COMPLETED, session));

    expect(await subscription()).toMatchObject({ status: 'paid' });
    expect(await checkout()).toMatchObject({ session_id: session.id });
  });

  it.each([
    ['amount', { amount_total: 100 }, { field: 'price_cents', expected: 1900, received: 100 }],
    ['amount', { amount_total: null }, { field: 'price_cents', expected: 1900, received: null }],
    ['currency', { currency: 'huf' }, { field: 'currency', expected: 'EUR', received: 'HUF' }],
    ['session', { id: 'cs_other' }, { field: 'session_id', expected: expect.any(String), received: 'cs_other' }],
  ])('200 for a payment with another %s, which changes nothing and is logged: %j', async (_, more, difference) => {
    const { stripe, service, upgrade, notify, sessionOf, subscription, checkout } = await givenStripe();
    await upgrade();
    const before = [await subscription(), await checkout()];

    const answer = await notify(stripe.notification(COMPLETED, await sessionOf(more)));

    expect([answer.status, await answer.json()]).toEqual([200, { received: true }]);
    expect([await subscription(), await checkout()]).toEqual(before);
    expect(service.logged.filter(({ level }) => level === 50)).toEqual([
      expect.objectContaining({ checkout: before[1].id, differences: [difference] }),
    ]);
    await notify(stripe.notification(COMPLETED, await sessionOf()));
    expect(await subscription()).toMatchObject({ status: 'paid' });
  });

  it.each([{ amount_total: 100 }, { currency: 'usd' }])(
    'does not count a payment with %j before the session id is stored',
    async (more) => {
      const { stripe, id, upgrade, notify, sessionOf, subscription, checkout } = await givenStripe();
      await upgrade();
      const session = await sessionOf(more);
      await query(await testDb(), sql`update checkouts set session_id = null where subscription_id = ${id}`);

      await notify(stripe.notification(COMPLETED, session));

      expect(await subscription()).toMatchObject({ status: 'trial' });
      expect(await checkout()).toMatchObject({ status: 'open', session_id: null });
    },
  );

  it('leaves a checkout open if another session with its reference expires or fails', async () => {
    const { stripe, upgrade, notify, sessionOf, checkout } = await givenStripe();
    await upgrade();

    for (const type of [EXPIRED, 'checkout.session.async_payment_failed']) {
      expect((await notify(stripe.notification(type, await sessionOf({ id: 'cs_other' })))).status).toBe(200);
    }

    expect(await checkout()).toMatchObject({ status: 'open' });
  });

  it('counts only the payment of its own session, not another one with its reference and amount', async () => {
    const { stripe, upgrade, notify, sessionOf, subscription, checkout } = await givenStripe();
    await upgrade();
    await Promise.all([
      notify(stripe.notification(COMPLETED, await sessionOf())),
      notify(stripe.notification(COMPLETED, await sessionOf({ id: 'cs_other', subscription: 'sub_other' }))),
    ]);

    expect(await subscription()).toMatchObject({ status: 'paid' });
    expect((await checkout()).provider_subscription_id).not.toBe('sub_other');
  });

  it('closes the other checkouts of the subscription', async () => {
    const { stripe, upgrade, notify, sessionOf } = await givenStripe();
    await upgrade('month');
    await upgrade('year');

    await notify(stripe.notification(COMPLETED, await sessionOf()));

    expect(stripe.sessions.map(({ isExpired }) => isExpired)).toEqual([false, true]);
  });

  it('logs a warning if a subscription is paid twice', async () => {
    const { stripe, service, upgrade, notify, sessionOf } = await givenStripe();
    await upgrade('month');
    const month = await sessionOf();
    await upgrade('year');
    await query(
      await testDb(),
      sql`update subscriptions set status = 'paid', paid_at = now(),
      plan_id = (select plan_id from checkouts where reference = ${month.client_reference_id}) where id = (
      select subscription_id from checkouts where reference = ${month.client_reference_id})`,
    );

    await notify(stripe.notification(COMPLETED, month));

    expect(service.logged).toContainEqual(
      expect.objectContaining({ msg: 'A subscription was paid twice: refund one payment.' }),
    );
  });

  it('200 for unrelated events and unknown checkouts', async () => {
    const { stripe, notify } = await givenStripe();
    const others = [
      stripe.notification('invoice.paid', { id: 'in_1' }),
      stripe.notification('customer.created', { id: 'cus_1' }),
      stripe.notification(COMPLETED, { id: 'cs_1', client_reference_id: null, payment_status: 'paid' }),
      stripe.notification(COMPLETED, { id: 'cs_1', client_reference_id: 'order 5', payment_status: 'paid' }),
      stripe.notification(COMPLETED, {
        id: 'cs_1',
        client_reference_id: '5f364aca-a792-4f75-8861-b325bd5212ed',
        payment_status: 'paid',
      }),
    ];

    for (const notification of others) expect((await notify(notification)).status).toBe(200);
  });

  it('404 if Stripe is not configured', async () => {
    const { url } = await testService();

    expect((await fetch(`${url}/webhooks/stripe`, { method: 'POST', body: '{}' })).status).toBe(404);
  });
});
