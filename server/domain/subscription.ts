import { sql } from 'kysely';
import type { z } from 'zod';
import type {
  CheckoutResult,
  Subscription,
  SubscriptionList,
  TrialSet,
  TrialUpgrade,
} from '../../shared/subscription.ts';
import type { Provisioning } from '../context.ts';
import { type Db, orRefuse, query, transact } from '../database/query.ts';
import { badRequest, invalid, notFound } from '../errors.ts';
import { PAYMENTS_NOT_SET_UP } from '../payments/provider.ts';
import type { ProjectContext } from '../trpc.ts';
import { addCheckout, findOpenCheckout, openAtProvider, payWithoutProvider, refusalOf } from './checkout.ts';
import type { SubscriptionStatus } from './checkoutRow.ts';
import { readCursor, toPage } from './page.ts';
import { choosePlan } from './plan.ts';
import { closeAtProvider } from './settlement.ts';

type SubscriptionRow = z.input<typeof Subscription>;

/**
 * Opens the checkout that makes a trial, active or expired, or a subscription that has ended, a paid one. While one for the same choice is open, it
 * is answered again; a plan that costs nothing is activated at once.
 */
export async function upgradeTrial(context: ProjectContext, choice: TrialUpgrade): Promise<CheckoutResult> {
  const { db, caller, payments } = context;
  const plan = await choosePlan(db, choice);

  const { checkout, superseded } = await transact(db, async (db) => {
    const subscription = await lockSubscription(db, caller.project.platform_id, choice.product);
    if (!subscription) throw notFound('There is no subscription for this product.');
    const refusal = refusalOf(subscription.status);
    if (refusal) throw refusal;

    const provider = payments?.name ?? 'none';
    const order = { subscription_id: subscription.id, plan, created_by: caller.id, provider } as const;
    if (plan.price_cents === 0) return payWithoutProvider(db, order, context.publicUrl);
    if (!payments) throw new Error(PAYMENTS_NOT_SET_UP);
    return { checkout: (await findOpenCheckout(db, order)) ?? (await addCheckout(db, order)), superseded: [] };
  });
  await closeAtProvider(context, superseded);

  const { session_id, checkout_url } =
    checkout.checkout_url === null ? await openAtProvider(context, checkout) : checkout;
  return { checkout_url: checkout_url!, session_id, subscription_id: checkout.subscription_id };
}

/** Starts a trial of a platform, or moves its end; one whose paid subscription has ended gets a new trial. */
export async function setTrial({ db }: Provisioning, { platform_id, product, days }: TrialSet) {
  const [known] = await query(db, sql`select from plans where product = ${product} limit 1`);
  if (!known) throw invalid({ product: 'names no product: put its plans into the catalogue first' });

  const set = query(
    db,
    sql<{ id: number }>`
      insert into subscriptions (platform_id, product, status, trial_ends_at)
      values (${platform_id}, ${product}, 'trial', now() + make_interval(days => ${days}))
      on conflict (platform_id, product) do update set status = 'trial', plan_id = null, paid_at = null,
        trial_ends_at = excluded.trial_ends_at, updated_at = now()
        where subscriptions.status in ('trial', 'ended')
      returning id`,
  );
  const [trial] = await orRefuse(set, {
    subscriptions_platform_id_foreign: () => invalid({ platform_id: 'names no platform' }),
  });
  if (!trial) throw badRequest('This subscription is paid already, or a payment for it is due.');
  const [subscription] = await query(db, sql<SubscriptionRow>`${SUBSCRIPTION} where s.id = ${trial.id}`);
  return { subscription: subscription! };
}

export async function listSubscriptions({ db }: Provisioning, { platform_id, cursor, limit }: SubscriptionList) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    db,
    sql<SubscriptionRow>`
      ${SUBSCRIPTION} where s.id > ${after} and (${platform_id ?? null}::int is null or s.platform_id = ${platform_id ?? null})
      order by s.id limit ${limit + 1}`,
  );
  const { rows: subscriptions, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { subscriptions, next_cursor };
}

const SUBSCRIPTION = sql`
  select s.id, s.platform_id, s.product, s.status, s.trial_ends_at, p.plan, p.period, s.paid_at
  from subscriptions s left join plans p on p.id = s.plan_id`;

/** Whoever opens or settles a checkout of a subscription waits here for whoever does already. */
async function lockSubscription(db: Db, platformId: number, product: string) {
  const [subscription] = await query(
    db,
    sql<{ id: number; status: SubscriptionStatus }>`
      select id, status from subscriptions where platform_id = ${platformId} and product = ${product} for update`,
  );
  return subscription;
}
