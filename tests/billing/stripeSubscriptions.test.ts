import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { NOW } from '../harness/fakeStripe.ts';
import { COMPLETED, givenPaid, givenStripe } from '../harness/stripeService.ts';
import { stored, testDb } from '../harness/world.ts';

describe('a subscription that Stripe charges', () => {
  it('is past due when a renewal fails, and paid again when the invoice is paid; repeated events change nothing', async () => {
    const { renewalFails, renewed, subscription } = await givenPaid();
    const before = await subscription();

    expect((await renewalFails(10)).status).toBe(200);
    const pastDue = await subscription();
    await Promise.all([renewalFails(10), renewalFails(10)]);

    expect(pastDue).toMatchObject({ status: 'past_due', plan_id: before.plan_id, paid_at: before.paid_at });
    expect(await subscription()).toEqual(pastDue);
    await renewed(20);
    expect(await subscription()).toMatchObject({ status: 'paid', plan_id: before.plan_id, paid_at: before.paid_at });
  });

  it('ends when Stripe ends it, and later events do not change that', async () => {
    const { deleted, renewed, renewalFails, disputed, subscription } = await givenPaid();

    await deleted(10);
    const ended = await subscription();
    for (const tell of [deleted, renewed, renewalFails, disputed]) await tell(20);

    expect(ended).toMatchObject({ status: 'ended', plan_id: expect.any(Number), paid_at: expect.any(Date) });
    expect(await subscription()).toEqual(ended);
  });

  it('follows the newest event, in whatever order they arrive', async () => {
    const { renewalFails, renewed, disputed, disputeCloses, status } = await givenPaid();

    await renewed(20);
    await renewalFails(10);
    expect(await status()).toBe('paid');
    await disputeCloses(40, 'won');
    await disputed(30);
    expect(await status()).toBe('paid');
    await renewalFails(50);
    await renewed(45);
    expect(await status()).toBe('past_due');
  });

  it('is paid when an invoice failed and was paid in the same second', async () => {
    const [first, second] = [await givenPaid(), await givenPaid()];

    await first.renewalFails(10);
    await first.renewed(10);
    await second.renewed(10);
    await second.renewalFails(10);

    expect([await first.status(), await second.status()]).toEqual(['paid', 'paid']);
  });

  it('does not depend on which of several concurrent events is handled first', async () => {
    const { renewalFails, renewed, deleted, status } = await givenPaid();

    await Promise.all([renewalFails(10), renewed(20), renewalFails(15), renewed(12)]);
    expect(await status()).toBe('paid');
    await Promise.all([deleted(30), renewed(40), deleted(30)]);

    expect(await status()).toBe('ended');
  });

  it('remembers events that arrive before its payment', async () => {
    const { stripe, upgrade, notify, sessionOf, subscription, id } = await givenStripe();
    await upgrade();
    const session = await sessionOf();
    const metadata = { reference: session.client_reference_id };
    const gone = { id: `sub_${id}`, metadata };

    await notify(stripe.notification('customer.subscription.deleted', gone, { created: NOW + 10 }));
    expect(await subscription()).toMatchObject({ status: 'trial' });
    await notify(stripe.notification(COMPLETED, session, { created: NOW }));

    expect(await subscription()).toMatchObject({ status: 'ended' });
    expect((await upgrade()).status).toBe(200);
  });

  it.each([
    ['paid if an invoice failed before the payment', -10, 'paid'],
    ['past due if a renewal failed after the payment', 10, 'past_due'],
  ])('is %s, when the failure arrives first', async (_, after, expected) => {
    const { stripe, upgrade, notify, sessionOf, subscription, id } = await givenStripe();
    await upgrade();
    const session = await sessionOf();
    const details = { subscription: `sub_${id}`, metadata: { reference: session.client_reference_id } };
    const invoice = { id: `in_${id}`, parent: { subscription_details: details } };

    await notify(stripe.notification('invoice.payment_failed', invoice, { created: NOW + after }));
    await notify(stripe.notification(COMPLETED, session, { created: NOW }));

    expect(await subscription()).toMatchObject({ status: expected });
  });

  it('ignores a failed attempt to pay that came before the paid one', async () => {
    const { stripe, upgrade, notify, sessionOf, subscription, checkout, id } = await givenStripe();
    await upgrade();
    const session = await sessionOf();
    const gone = { id: `sub_attempt_${id}`, metadata: { reference: session.client_reference_id } };

    await notify(stripe.notification('customer.subscription.deleted', gone, { created: NOW }));
    await notify(stripe.notification(COMPLETED, session, { created: NOW + 10 }));

    expect(await subscription()).toMatchObject({ status: 'paid' });
    expect(await checkout()).toMatchObject({ provider_subscription_id: `sub_${id}`, ended_at: null });
  });

  it('shows its status on the page of its checkout', async () => {
    const { service, reference, renewalFails, deleted } = await givenPaid();
    const page = async () => (await fetch(`${service.url}/checkout/${reference}`)).text();

    expect(await page()).toContain('Payment received');
    await renewalFails(10);
    expect(await page()).toContain('A payment is due');
    await deleted(20);
    expect(await page()).toContain('Subscription ended');
  });

  it('is found by the reference of its checkout if its Stripe id is not stored', async () => {
    const { id, renewalFails, status, checkout, name } = await givenPaid();
    await query(
      await testDb(),
      sql`update checkouts set provider_subscription_id = null where subscription_id = ${id}`,
    );

    await renewalFails(10);

    expect(await status()).toBe('past_due');
    expect(await checkout()).toMatchObject({ provider_subscription_id: name });
  });

  it('is found in invoices of older Stripe API versions', async () => {
    const { tell, name, status } = await givenPaid();

    await tell('invoice.payment_failed', { id: 'in_old', subscription: name }, 10);

    expect(await status()).toBe('past_due');
  });
});

describe('a refund', () => {
  it('of the whole last payment ends the subscription, here and at Stripe', async () => {
    const { refunded, status, isCancelled } = await givenPaid();

    await refunded(10);
    const again = await refunded(10);

    expect([again.status, await status(), isCancelled()]).toEqual([200, 'ended', true]);
  });

  it.each([
    ['part of a payment', { refunded: false, amount_refunded: 100 }],
    ['a payment without an invoice', { payment_intent: 'pi_of_a_shop' }],
    ['a charge without a payment', { payment_intent: null }],
  ])('of %s changes nothing', async (_, charge) => {
    const { refunded, status, isCancelled } = await givenPaid();

    const { status: answered } = await refunded(10, charge);

    expect([answered, await status(), isCancelled()]).toEqual([200, 'paid', false]);
  });

  it('of an earlier period changes nothing', async () => {
    const { id, refunded, status, isCancelled } = await givenPaid();

    await refunded(10, { payment_intent: `pi_1_${id}` });

    expect([await status(), isCancelled()]).toEqual(['paid', false]);
  });

  it('500 while Stripe is down, and the next notification works', async () => {
    const { stripe, refunded, status, isCancelled } = await givenPaid();
    stripe.isDown = true;

    expect((await refunded(10)).status).toBe(500);
    expect(await status()).toBe('paid');
    stripe.isDown = false;
    await refunded(10);

    expect([await status(), isCancelled()]).toEqual(['ended', true]);
  });

  it('of one of two payments leaves the subscription paid by the other', async () => {
    const { stripe, id, notify, refunded, status, subscription } = await givenPaid();
    const [year] = await query(
      await testDb(),
      sql<{ reference: string; plan_id: number }>`
        insert into checkouts (subscription_id, plan_id, price_cents, currency, provider, session_id)
        select ${id}, p.id, p.price_cents, 'EUR', 'stripe', ${`cs_year_${id}`} from plans p
        where p.period = 'year' and p.product = (select product from subscriptions where id = ${id})
        returning reference, plan_id`,
    );
    const session = { id: `cs_year_${id}`, client_reference_id: year!.reference, payment_status: 'paid' };
    const paid = { amount_total: 19_000, currency: 'eur', subscription: `sub_year_${id}` };
    await notify(stripe.notification(COMPLETED, { ...session, ...paid }));
    const before = await subscription();

    await refunded(10);

    expect(before.plan_id).not.toBe(year!.plan_id);
    expect(await status()).toBe('paid');
    expect(await subscription()).toMatchObject({ plan_id: year!.plan_id });
  });
});

describe('a dispute', () => {
  it.each([
    ['won', 'paid', false],
    ['warning_closed', 'paid', false],
    ['lost', 'ended', true],
  ])('makes it past due until closed: as %s, it is %s', async (outcome, expected, isCancelledThen) => {
    const { disputed, disputeCloses, status, isCancelled } = await givenPaid();

    await disputed(10);
    await disputed(10);
    const meanwhile = await status();
    await disputeCloses(20, outcome);
    await disputeCloses(20, outcome);

    expect(meanwhile).toBe('past_due');
    expect([await status(), isCancelled()]).toEqual([expected, isCancelledThen]);
  });

  it('that is only an inquiry changes nothing until funds are withdrawn', async () => {
    const { id, tell, disputed, status } = await givenPaid();

    await disputed(10, 'warning_needs_response');
    expect(await status()).toBe('paid');
    const taken = { payment_intent: `pi_1_${id}`, status: 'needs_response' };
    await tell('charge.dispute.funds_withdrawn', taken, 20);

    expect(await status()).toBe('past_due');
  });

  it('that is won does not settle a failed renewal, nor does a renewal settle a dispute', async () => {
    const { disputed, disputeCloses, renewalFails, renewed, status } = await givenPaid();

    await disputed(10);
    await renewalFails(20);
    await disputeCloses(30, 'won');
    expect(await status()).toBe('past_due');
    await disputed(40);
    await renewed(50);
    expect(await status()).toBe('past_due');
    await disputeCloses(60, 'won');

    expect(await status()).toBe('paid');
  });
});

describe('foreign events', () => {
  it('200, and nothing changes: another subscription, another reference, a connected account', async () => {
    const { tell, name, id, subscription, checkout, deleted, renewalFails } = await givenPaid();
    const before = [await subscription(), await checkout()];
    const { reference } = await checkout();
    const account = 'acct_of_somebody_else';

    const answers = [
      await tell('customer.subscription.deleted', { id: 'sub_of_a_shop', metadata: {} }, 10),
      await tell('customer.subscription.deleted', { id: 'sub_of_a_shop', metadata: { reference: 'order 5' } }, 10),
      // Someone copied the subscription in Stripe: the copy is not the one that was paid here.
      await tell('customer.subscription.deleted', { id: 'sub_of_a_copy', metadata: { reference } }, 10),
      await tell('invoice.payment_failed', { id: 'in_of_a_shop', parent: null }, 10),
      await tell('invoice.payment_failed', { id: 'in_of_a_quote', parent: { subscription_details: null } }, 10),
      await deleted(10, { account }),
      await renewalFails(10, { account }),
    ];

    expect(answers.map(({ status }) => status)).toEqual(Array(7).fill(200));
    expect([await subscription(), await checkout()]).toEqual(before);
    expect(name).toBe(`sub_${id}`);
  });

  it('400 for events with a wrong signature, and nothing changes', async () => {
    const { deleted, renewalFails, status } = await givenPaid();
    const secret = 'whsec_of_somebody_else';

    expect((await deleted(10, { secret })).status).toBe(400);
    expect((await renewalFails(10, { secret })).status).toBe(400);
    expect(await status()).toBe('paid');
  });
});

describe('upgrade-trial and trials', () => {
  it('400 while a payment is due, so that nobody pays twice', async () => {
    const { renewalFails, upgrade } = await givenPaid();
    await renewalFails(10);

    const { status, body } = await upgrade('year');

    expect(status).toBe(400);
    expect(body).toEqual({
      error: true,
      message: "A payment for this subscription is due. Settle it first; you can't start a second subscription.",
      data: [],
    });
  });

  it('200 for an ended subscription; once paid, events of the old Stripe subscription are ignored', async () => {
    const { stripe, id, upgrade, notify, deleted, renewalFails, refunded, subscription } = await givenPaid();
    await deleted(10);
    const ended = await subscription();

    const { body } = await upgrade('year');
    const [opened] = await query(
      await testDb(),
      sql<{ reference: string }>`select * from checkouts where subscription_id = ${id} and status = 'open'`,
    );
    const paid = { payment_status: 'paid', amount_total: 19_000, currency: 'eur', subscription: `sub_year_${id}` };
    const session = { id: body.data.session_id, client_reference_id: opened!.reference, ...paid };
    await notify(stripe.notification(COMPLETED, session, { created: NOW + 20 }));
    const again = await subscription();
    for (const tell of [deleted, renewalFails, refunded]) await tell(30);

    expect(again).toMatchObject({ status: 'paid' });
    expect(again.plan_id).not.toBe(ended.plan_id);
    expect(new Date(again.paid_at).getTime()).toBeGreaterThanOrEqual(new Date(ended.paid_at).getTime());
    expect(await subscription()).toEqual(again);
  });

  it('400 for a new trial while a payment is due; an ended subscription can get one', async () => {
    const { asSuperadmin, id, renewalFails, deleted, disputed } = await givenPaid();
    const { platform_id, product } = await stored('subscriptions', id);
    const setTrial = () => asSuperadmin.rpc.subscriptions.setTrial.mutate({ platform_id, product });
    await renewalFails(10);

    await expect(setTrial()).rejects.toThrow('already paid, or a payment for it is due');
    await deleted(20);
    const { subscription } = await setTrial();
    await disputed(30);

    expect(subscription).toMatchObject({ status: 'trial', plan: null, paid_at: null });
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'trial' });
  });
});
