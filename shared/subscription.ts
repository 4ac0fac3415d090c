import { z } from 'zod';
import { fieldsOfUpdate } from './changes.ts';
import { FUTURE_TIMESTAMP, flag, id, optionalText, storedChoice, text, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

export const PERIODS = ['month', 'year'] as const;

/** `expired` is not stored: it follows from `trial_ends_at`. */
export const SUBSCRIPTION_STATUSES = ['trial', 'free', 'paid', 'past_due', 'ended'] as const;

const period = z.enum(PERIODS).meta({ description: 'The billing period.', example: 'month' });
const product = text(100).meta({ description: 'The subscribed product.', example: 'websites' });
const plan = text(100).meta({ description: 'One of the plans of the product.', example: 'pro' });

export const Plan = z
  .object({
    id,
    product: z.string().meta({ description: 'The product.' }),
    plan: z.string().meta({ description: 'The plan.' }),
    period,
    price_cents: z.int32().min(0).meta({ description: 'The price for a period, in cents.' }),
    currency: z.string().meta({ description: 'The currency, as in EUR.' }),
    is_active: z.boolean().meta({ description: 'Whether it can be selected.' }),
  })
  .meta({ id: 'Plan', description: 'A plan of the catalogue.' });

function hasHundredths(currency: string): boolean {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits === 2;
}

const terms = {
  currency: z
    .string()
    .trim()
    .toUpperCase()
    .regex(/^[A-Z]{3}$/, { error: 'must be a currency code of three letters, such as EUR', abort: true })
    .refine(hasHundredths, { error: 'must be a currency with cents' })
    .meta({ maxLength: 3 })
    .nullish()
    .meta({ description: 'The currency; EUR for a new plan.', example: 'EUR' }),
  is_active: flag.meta({ description: 'Whether it can be selected; true for a new plan.' }),
};

/** Adds a plan to the catalogue, or changes it. */
export const PlanSet = z.object({
  product: product.meta({ description: 'The product.' }),
  plan: plan.meta({ description: 'The name of the plan, a new or a known one.' }),
  period,
  price_cents: z.int32().min(0).meta({ description: 'The price for a period, in cents; 0 is free.' }),
  ...fieldsOfUpdate(terms, Plan),
});
PlanSet.register(requestExamples, {
  example: { product: 'websites', plan: 'pro', period: 'month', price_cents: 1900 },
});
export type PlanSet = z.output<typeof PlanSet>;

export const PlanList = Page.extend({
  product: optionalText(100).meta({ description: 'Only the plans of this product.' }),
});
PlanList.register(requestExamples, { example: { product: 'websites', limit: 20 } });
export type PlanList = z.output<typeof PlanList>;
export const PlanPage = pageOf('plans', Plan);

export const Subscription = z
  .object({
    id,
    platform_id: id.meta({ description: 'The platform.' }),
    project_id: id.nullable().meta({
      description: 'A project of the platform to act in when paying for it; null if there is none.',
    }),
    product: z.string().meta({ description: 'The product.' }),
    status: storedChoice([...SUBSCRIPTION_STATUSES, 'expired']).meta({
      description:
        '`trial`; `expired`: a trial that is over; `free`: a plan without a price; `paid`; `past_due`: a payment failed or is disputed; `ended`: cancelled or refunded.',
    }),
    trial_ends_at: timestamp.meta({ description: 'The end of the trial.', example: FUTURE_TIMESTAMP }),
    plan: z.string().nullable().meta({ description: 'The plan that was chosen; null for a trial.' }),
    period: period.nullable().meta({ description: 'The billing period.' }),
    paid_at: timestamp.nullable().meta({ description: 'When it was paid for; null for a trial or a free plan.' }),
  })
  .meta({ id: 'Subscription', description: "A platform's subscription to a product." });

const TRIAL_DAYS = 14;

/** Starts a trial, or moves its end. */
export const TrialSet = z.object({
  platform_id: id.meta({ description: 'The platform.' }),
  product,
  days: z
    .int()
    .min(0)
    .max(3650)
    .default(TRIAL_DAYS)
    .meta({ description: `The days from now until its end; ${TRIAL_DAYS} if not sent.` }),
});
TrialSet.register(requestExamples, { example: { platform_id: 2, product: 'websites', days: 14 } });
export type TrialSet = z.output<typeof TrialSet>;

export const SubscriptionList = Page.extend({
  platform_id: id.nullish().meta({ description: 'Only those of this platform.' }),
});
SubscriptionList.register(requestExamples, { example: { limit: 20 } });
export type SubscriptionList = z.output<typeof SubscriptionList>;
export const SubscriptionPage = pageOf('subscriptions', Subscription);

export const TrialUpgrade = z.object({ plan, period, product });
export type TrialUpgrade = z.output<typeof TrialUpgrade>;

export const CheckoutResult = z.object({
  checkout_url: z.string().meta({
    description: 'The address to pay at; for a free plan, a page that says that it is active.',
    example: 'https://checkout.example.com/c/1',
  }),
  session_id: z
    .string()
    .nullable()
    .meta({ description: "The payment provider's id of the checkout; null for a free plan." }),
  subscription_id: id.meta({ description: 'The subscription to pay for.' }),
});
export type CheckoutResult = z.output<typeof CheckoutResult>;
