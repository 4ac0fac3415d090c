import { z } from 'zod';
import { flag, id, optionalText, text, timestamp } from './fields.ts';
import { nextCursor, Page } from './paging.ts';

export const PERIODS = ['month', 'year'] as const;

export const SUBSCRIPTION_STATUSES = ['trial', 'paid', 'past_due', 'ended'] as const;

const period = z.enum(PERIODS).meta({ description: 'How long a payment lasts.', example: 'month' });
const product = text(100).meta({ description: 'The product that is subscribed to.', example: 'websites' });
const plan = text(100).meta({ description: 'One of the plans of the product.', example: 'pro' });

/** A line of the catalogue: what a plan of a product costs for a period. */
export const Plan = z
  .object({
    id,
    product: z.string().meta({ description: 'The product.' }),
    plan: z.string().meta({ description: 'The plan.' }),
    period,
    price_cents: z.int32().meta({ description: 'The price for a period, in hundredths of the currency.' }),
    currency: z.string().meta({ description: 'The currency, as in EUR.' }),
    is_active: z.boolean().meta({ description: 'Whether it can be chosen.' }),
  })
  .meta({ id: 'Plan' });

function hasHundredths(currency: string): boolean {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits === 2;
}

/** Puts a line into the catalogue, or changes the one that is there. */
export const PlanSet = z.object({
  product,
  plan,
  period,
  price_cents: z
    .int32()
    .min(0)
    .meta({ description: 'The price for a period, in hundredths of the currency; 0 is free.' }),
  currency: z
    .string()
    .trim()
    .toUpperCase()
    .regex(/^[A-Z]{3}$/, { error: 'must be the three letters of a currency, such as EUR', abort: true })
    .refine(hasHundredths, { error: 'must be a currency that is divided into hundredths' })
    .meta({ maxLength: 3 })
    .nullish()
    .meta({ description: 'The currency; when not sent it stays, and is EUR at first.' }),
  is_active: flag.meta({ description: 'Whether it can be chosen.' }),
});
export type PlanSet = z.output<typeof PlanSet>;

export const PlanList = Page.extend({
  product: optionalText(100).meta({ description: 'Only the plans of this product.' }),
});
export type PlanList = z.output<typeof PlanList>;
export const PlanPage = z.object({ plans: z.array(Plan), next_cursor: nextCursor });

/** A platform's subscription to a product. */
export const Subscription = z
  .object({
    id,
    platform_id: id.meta({ description: 'The platform.' }),
    product: z.string().meta({ description: 'The product.' }),
    status: z.enum(SUBSCRIPTION_STATUSES).meta({
      description:
        'On trial, active or expired; paid; past due while a payment failed or is disputed; ended when it was cancelled or the money was given back.',
    }),
    trial_ends_at: timestamp.meta({ description: 'When the trial ends, or ended.' }),
    plan: z.string().nullable().meta({ description: 'The plan that was paid for.' }),
    period: period.nullable(),
    paid_at: timestamp.nullable().meta({ description: 'When it was paid for.' }),
  })
  .meta({ id: 'Subscription' });

/** Starts a trial, or moves its end. */
export const TrialSet = z.object({
  platform_id: id.meta({ description: 'The platform.' }),
  product,
  days: z.int().min(0).max(3650).default(14).meta({ description: 'In how many days it ends; 14 when not sent.' }),
});
export type TrialSet = z.output<typeof TrialSet>;

export const SubscriptionList = Page.extend({
  platform_id: id.nullish().meta({ description: 'Only those of this platform.' }),
});
export type SubscriptionList = z.output<typeof SubscriptionList>;
export const SubscriptionPage = z.object({ subscriptions: z.array(Subscription), next_cursor: nextCursor });

export const TrialUpgrade = z.object({ plan, period, product });
export type TrialUpgrade = z.output<typeof TrialUpgrade>;

export const CheckoutResult = z.object({
  checkout_url: z
    .string()
    .meta({ description: 'Where to pay, or to see that it is done.', example: 'https://checkout.example.com/c/1' }),
  session_id: z
    .string()
    .nullable()
    .meta({ description: "The payment provider's name for the checkout; null when there is nothing to pay." }),
  subscription_id: id.meta({ description: 'The subscription that becomes a paid one.' }),
});
export type CheckoutResult = z.output<typeof CheckoutResult>;
