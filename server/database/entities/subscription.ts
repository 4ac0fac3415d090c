import { defineEntity, p } from '@mikro-orm/core';
import { PERIODS, SUBSCRIPTION_STATUSES } from '../../../shared/subscription.ts';
import { created, identity, refersTo, timestamp } from './columns.ts';
import { Platform } from './platform.ts';
import { User } from './user.ts';

/** A plan of the catalogue: the price of a product's plan for a period. */
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

/** A platform's subscription to a product: a trial until a plan is chosen; then its paid checkouts determine the status. */
export const Subscription = defineEntity({
  name: 'Subscription',
  tableName: 'subscriptions',
  properties: {
    id: identity(),
    platform_id: () => refersTo(Platform, 'platform_id'),
    product: p.text(),
    status: p.enum([...SUBSCRIPTION_STATUSES]),
    trial_ends_at: timestamp(),
    plan_id: () => refersTo(Plan, 'plan_id').nullable(),
    paid_at: timestamp().nullable(),
    ...created(),
  },
  checks: [
    {
      name: 'subscriptions_paid_check',
      expression: `(status = 'trial') = (plan_id is null) and (status in ('trial', 'free')) = (paid_at is null)`,
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
    /** Its secret id for the provider and the checkout page: anyone who knows it can pay. */
    reference: p.uuid().defaultRaw('gen_random_uuid()'),
    subscription_id: () => refersTo(Subscription, 'subscription_id'),
    plan_id: () => refersTo(Plan, 'plan_id'),
    created_by: () => refersTo(User, 'created_by').nullable(),
    /** The price when it was opened. */
    price_cents: p.integer(),
    currency: p.string().length(3),
    /** `none` for a free plan without payments. */
    provider: p.enum(['stripe', 'test', 'none']),
    /** The provider's id of the checkout. */
    session_id: p.text().nullable(),
    checkout_url: p.text().nullable(),
    /** The provider's id of the subscription. */
    provider_subscription_id: p.text().nullable(),
    /** Whether the last renewal failed; `…_changed_at` is the provider's timestamp: older events are ignored. */
    is_past_due: p.boolean().default(false),
    past_due_changed_at: timestamp().nullable(),
    /** Whether a dispute about a payment is open. */
    is_disputed: p.boolean().default(false),
    disputed_changed_at: timestamp().nullable(),
    /** When it was cancelled or refunded, permanently. */
    ended_at: timestamp().nullable(),
    status: p.enum(['open', 'paid', 'cancelled', 'expired']).default('open'),
    expires_at: timestamp().nullable(),
    ...created(),
  },
  indexes: [
    { properties: ['plan_id'] },
    { name: 'checkouts_unpaid_index', properties: ['created_at'], where: `status <> 'paid'` },
    { name: 'checkouts_ended_index', properties: ['ended_at'], where: 'ended_at is not null' },
  ],
  uniques: [
    { name: 'checkouts_one_open', properties: ['subscription_id', 'plan_id'], where: `status = 'open'` },
    { name: 'checkouts_session_unique', properties: ['provider', 'session_id'] },
    { name: 'checkouts_provider_subscription_unique', properties: ['provider', 'provider_subscription_id'] },
    { properties: ['reference'] },
  ],
});
