import { sql } from 'kysely';
import type { z } from 'zod';
import { badRequest, invalid, notFound } from '../../../shared/errors.ts';
import type {
  CheckoutResult,
  Subscription,
  SubscriptionList,
  TrialSet,
  TrialUpgrade,
} from '../../../shared/subscription.ts';
import { readPage } from '../../database/page.ts';
import { type Db, mapConstraintErrors, transact } from '../../database/query.ts';
import { NOW } from '../../database/timestamp.ts';
import { PAYMENTS_NOT_SET_UP } from '../../payments/provider.ts';
import { actingProject } from '../access/access.ts';
import type { ActingProject, ProjectCaller, ProjectContext, ProvisioningContext } from '../access/context.ts';
import { isManager, ownsPlatform } from '../access/permission.ts';
import { writeEvents } from '../event/event.ts';
import { addCheckout, findOpenCheckout, openAtProvider, paymentError, payWithoutProvider } from './checkout.ts';
import { choosePlan } from './plan.ts';
import { closeAtProvider } from './settlement.ts';

/**
 * Opens a checkout to pay for a trial, active or expired, or for a free or ended subscription. Returns the open checkout for the same
 * choice, if there is one; a free plan is activated at once.
 */
export async function upgradeTrial(context: ProjectContext, choice: TrialUpgrade): Promise<CheckoutResult> {
  const { db, caller, services } = context;
  const { payments } = services;
  const plan = await choosePlan(db, choice);
  const { platform_id } = billedProject(caller);

  const { checkout, cancelled } = await transact(db, async (db) => {
    const subscription = await lockSubscription(db, platform_id, choice.product);
    const error = paymentError(subscription.status);
    if (error) throw error;

    const provider = payments?.name ?? 'none';
    const order = { subscription_id: subscription.id, plan, created_by: caller.id, provider } as const;
    if (plan.price_cents === 0) return payWithoutProvider({ ...context, db }, order);
    if (!payments) throw new Error(PAYMENTS_NOT_SET_UP);
    return { checkout: (await findOpenCheckout(db, order)) ?? (await addCheckout(db, order)), cancelled: [] };
  });
  await closeAtProvider(context, cancelled);

  const { checkout_url, session_id, subscription_id } = checkout;
  const opened = checkout_url === null ? await openAtProvider(context, checkout) : { checkout_url, session_id };
  return { ...opened, subscription_id };
}

function billedProject(caller: ProjectCaller): ActingProject {
  if (!caller.superadmin_billing || !caller.project) return actingProject(caller);
  caller.actedIn?.push({ project_id: caller.project.id });
  return caller.project;
}

/** Starts a trial, or moves its end; an ended or free subscription becomes a trial again. */
export async function setTrial(context: ProvisioningContext, { platform_id, product, days }: TrialSet) {
  const { db } = context;
  const known = await db.selectFrom('plans').select('id').where('product', '=', product).limit(1).executeTakeFirst();
  if (!known) throw invalid({ product: 'does not exist: add its plans to the catalogue first' }, 'unknown_plan');

  const trial_ends_at = sql<Date>`now() + make_interval(days => ${days})`;
  return transact(db, async (db) => {
    const set = db
      .insertInto('subscriptions')
      .values({ platform_id, product, status: 'trial', trial_ends_at })
      .onConflict((one) =>
        one
          .columns(['platform_id', 'product'])
          .doUpdateSet({ status: 'trial', plan_id: null, paid_at: null, trial_ends_at, updated_at: NOW })
          .where('subscriptions.status', 'in', ['trial', 'free', 'ended']),
      )
      .returning('id')
      .executeTakeFirst();
    const trial = await mapConstraintErrors(set, {
      subscriptions_platform_id_foreign: () => invalid({ platform_id: 'does not exist' }, 'unknown_reference'),
    });
    if (!trial)
      throw badRequest('This subscription is already paid, or a payment for it is due.', 'trial_already_paid');
    await writeEvents({ ...context, db }, [
      { type: 'subscription.trial_set', platform_id, subject_id: trial.id, data: { product, status: 'trial' } },
    ]);
    return { subscription: await subscriptions(db).where('s.id', '=', trial.id).executeTakeFirstOrThrow() };
  });
}

/** The subscriptions that the caller may bill: those of their platforms, of the selected project's platform, or all. */
export async function listSubscriptions({ db, caller }: ProjectContext, { platform_id, ...page }: SubscriptionList) {
  const mayBillAll = (caller.superadmin || caller.superadmin_billing) && !caller.isProjectChosen;
  const found = subscriptions(db, mayBillAll ? undefined : caller)
    .$if(!mayBillAll, (all) => all.where(ownsPlatform('s.platform_id', caller)))
    .where(({ and }) => and({ 's.platform_id': platform_id ?? undefined }));
  return readPage('subscriptions', found, page, ['s.id']);
}

/** An expired trial stays a trial in the table, since no event ends it. The column is rounded to milliseconds, so `now` is, too. */
const SHOWN_STATUS = sql<z.output<typeof Subscription>['status']>`
  case when s.status = 'trial' and s.trial_ends_at <= now()::timestamptz(3) then 'expired' else s.status end`;

const subscriptions = (db: Db, owner?: ProjectCaller) =>
  db
    .selectFrom('subscriptions as s')
    .leftJoin('plans as p', 'p.id', 's.plan_id')
    .select(['s.id', 's.platform_id', 's.product', 's.trial_ends_at', 'p.plan', 'p.period', 's.paid_at'])
    .select(SHOWN_STATUS.as('status'))
    .select(({ selectFrom }) =>
      selectFrom('projects as b')
        .select(({ fn }) => fn.min('b.id').as('id'))
        .whereRef('b.platform_id', '=', 's.platform_id')
        .where('b.is_active', 'is', true)
        .where(owner ? isOwned(owner) : sql<boolean>`true`)
        .as('project_id'),
    );

/** Whether the caller may bill in a project `b`. */
const isOwned = ({ id, isProjectChosen, project }: ProjectCaller) =>
  isProjectChosen
    ? sql<boolean>`b.id = ${project?.id ?? null}::int`
    : sql<boolean>`exists (select from members m where m.project_id = b.id and m.user_id = ${id} and ${isManager('m')})`;

/** Locks the subscription row, so that opening and settling its checkouts are serialized. */
const lockSubscription = (db: Db, platformId: number, product: string) =>
  db
    .selectFrom('subscriptions')
    .select(['id', 'status'])
    .where('platform_id', '=', platformId)
    .where('product', '=', product)
    .forUpdate()
    .executeTakeFirstOrThrow(() => notFound('There is no subscription for this product.'));
