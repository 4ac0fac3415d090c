import { sql } from 'kysely';
import { query } from '../../server/database/query.ts';
import { givenFakeStripe, NOW, type NotificationOptions } from './fakeStripe.ts';
import { givenService, testDatabase } from './service.ts';
import { givenTrial, givenWorld, stored, testDb } from './world.ts';

const UPGRADE = '/services/platforms/v1/subscriptions/upgrade-trial';

export const COMPLETED = 'checkout.session.completed';

/** A service with payments by Stripe, and a trial. */
export async function givenStripe() {
  const stripe = await givenFakeStripe();
  const database = { ...(await testDatabase()) };
  const others = { payments: stripe.provider, database };
  const service = { ...(await givenService({ PUBLIC_URL: 'https://boards.test' }, others)), database };
  const { project, asOwner, asSuperadmin } = await givenWorld({ ...service });
  const { id, product } = await givenTrial(project);
  const upgrade = (period = 'month') => asOwner.post(UPGRADE, { product, plan: 'pro', period });
  const notify = ({ body, signature }: { body: string; signature?: string }) =>
    fetch(`${service.url}/webhooks/stripe`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(signature && { 'stripe-signature': signature }) },
      body,
    });
  const checkout = async () => {
    const db = await testDb();
    return (await query(db, sql<any>`select * from checkouts where subscription_id = ${id} order by id limit 1`))[0];
  };
  const sessionOf = async (more: object = {}) => {
    const { reference, session_id, price_cents } = await checkout();
    const paid = { payment_status: 'paid', amount_total: price_cents, currency: 'eur', subscription: `sub_${id}` };
    return { id: session_id as string, client_reference_id: reference as string, ...paid, ...more };
  };
  const subscription = () => stored('subscriptions', id);
  return { stripe, service, id, upgrade, notify, checkout, sessionOf, subscription, asSuperadmin };
}

/** The same with the trial paid at `NOW`, and Stripe's later notifications. */
export async function givenPaid() {
  const given = await givenStripe();
  const { stripe, id, upgrade, notify, sessionOf, checkout } = given;
  await upgrade();
  const { reference } = await checkout();
  const name = `sub_${id}`;
  stripe.subscriptions.set(name, { reference, latestInvoice: `in_2_${id}`, isCancelled: false });
  for (const number of [1, 2]) {
    stripe.payments.set(`pi_${number}_${id}`, { invoice: `in_${number}_${id}`, subscription: name });
  }
  await notify(stripe.notification(COMPLETED, await sessionOf(), { created: NOW }));

  const tell = (type: string, object: object, after: number, more: NotificationOptions = {}) =>
    notify(stripe.notification(type, object, { created: NOW + after, ...more }));
  const metadata = { reference };
  const invoice = { id: `in_2_${id}`, parent: { subscription_details: { subscription: name, metadata } } };
  /** Each sends a notification of something that happened so many seconds after the first payment. */
  const event = (type: string, object: object) => (after: number, more?: NotificationOptions) =>
    tell(type, object, after, more);
  const news = {
    renewalFails: event('invoice.payment_failed', invoice),
    renewed: event('invoice.paid', invoice),
    deleted: event('customer.subscription.deleted', { id: name, metadata }),
    refunded: (after: number, charge: object = {}) =>
      tell('charge.refunded', { payment_intent: `pi_2_${id}`, refunded: true, ...charge }, after),
    disputed: (after: number, status = 'needs_response') =>
      tell('charge.dispute.created', { payment_intent: `pi_1_${id}`, status }, after),
    disputeCloses: (after: number, status: string) =>
      tell('charge.dispute.closed', { payment_intent: `pi_1_${id}`, status }, after),
  };
  const status = async () => (await given.subscription()).status as string;
  const isCancelled = () => stripe.subscriptions.get(name)!.isCancelled;
  return { ...given, ...news, tell, name, reference, status, isCancelled };
}
