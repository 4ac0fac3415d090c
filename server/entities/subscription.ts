import { defineEntity, p } from '@mikro-orm/core';
import { PERIODS, SUBSCRIPTION_STATUSES } from '../../shared/subscription.ts';
import { created, identity, moment, refersTo } from './columns.ts';
import { Platform } from './platform.ts';
import { User } from './user.ts';

/** A line of the catalogue: what a plan of a product costs for a period. */
export const Plan = defineEntity({
  name: 'Plan',
  tableName: 'plans',
  properties: {
    id: identity(),
    product: p.text(),
    plan: p.text(),
    period: p.enum([...PERIODS]),
    price_cents: p.integer(),
    currency: p.string().length(3).default('EUR'),
    is_active: p.boolean().default(true),
    ...created(),
  },
  checks: [{ name: 'plans_price_check', expression: 'price_cents >= 0' }],
  uniques: [{ properties: ['product', 'plan', 'period'] }],
});

/** A platform's subscription to a product: a trial until `plan_id` is paid for, then as its paid checkouts stand. */
export const Subscription = defineEntity({
  name: 'Subscription',
  tableName: 'subscriptions',
  properties: {
    id: identity(),
    platform_id: () => refersTo(Platform, 'platform_id'),
    product: p.text(),
    status: p.enum([...SUBSCRIPTION_STATUSES]),
    trial_ends_at: moment(),
    plan_id: () => refersTo(Plan, 'plan_id').nullable(),
    paid_at: moment().nullable(),
    ...created(),
  },
  checks: [
    {
      name: 'subscriptions_paid_check',
      expression: `(status = 'trial') = (plan_id is null) and (status = 'trial') = (paid_at is null)`,
    },
  ],
  indexes: [{ properties: ['plan_id'] }],
  uniques: [{ properties: ['platform_id', 'product'] }],
});

export const Checkout = defineEntity({
  name: 'Checkout',
  tableName: 'checkouts',
  properties: {
    id: identity(),
    /** Names it to the provider and on our page: known only to those who may pay. */
    reference: p.uuid().defaultRaw('gen_random_uuid()'),
    subscription_id: () => refersTo(Subscription, 'subscription_id'),
    plan_id: () => refersTo(Plan, 'plan_id'),
    created_by: () => refersTo(User, 'created_by').nullable(),
    /** As the plan cost when it was opened. */
    price_cents: p.integer(),
    currency: p.string().length(3),
    /** `none` where payments are not set up: for a plan that costs nothing. */
    provider: p.enum(['stripe', 'test', 'none']),
    /** The provider's own name for it. */
    session_id: p.text().nullable(),
    checkout_url: p.text().nullable(),
    /** The provider's own name for the subscription that it charges. */
    provider_subscription_id: p.text().nullable(),
    /** The last renewal failed; `…_changed_at` is when, by the provider's clock: older news changes nothing. */
    is_past_due: p.boolean().default(false),
    past_due_changed_at: moment().nullable(),
    /** The bank took a payment back, and it is not decided yet. */
    is_disputed: p.boolean().default(false),
    disputed_changed_at: moment().nullable(),
    /** Cancelled, or the money was given back: for good. */
    ended_at: moment().nullable(),
    status: p.enum(['open', 'paid', 'cancelled', 'expired']).default('open'),
    expires_at: moment().nullable(),
    ...created(),
  },
  indexes: [{ properties: ['plan_id'] }],
  uniques: [
    { name: 'checkouts_one_open', properties: ['subscription_id', 'plan_id'], where: `status = 'open'` },
    { name: 'checkouts_session_unique', properties: ['provider', 'session_id'] },
    { name: 'checkouts_provider_subscription_unique', properties: ['provider', 'provider_subscription_id'] },
    { properties: ['reference'] },
  ],
});
