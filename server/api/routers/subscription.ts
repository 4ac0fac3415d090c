import { z } from 'zod';
import {
  CheckoutResult,
  Plan,
  PlanList,
  PlanPage,
  PlanSet,
  Subscription,
  SubscriptionList,
  SubscriptionPage,
  TrialSet,
  TrialUpgrade,
} from '../../../shared/subscription.ts';
import { listPlans, setPlan } from '../../domain/billing/plan.ts';
import { listSubscriptions, setTrial, upgradeTrial } from '../../domain/billing/subscription.ts';
import { rest, specified } from '../restOperation.ts';
import { billingProcedure, router, superadminProcedure } from '../trpc.ts';

export const subscriptionRouter = router({
  upgradeTrial: specified(billingProcedure, '/services/platforms/v1/subscriptions/upgrade-trial', {
    message: 'Checkout opened.',
    messageFor: ({ session_id }: CheckoutResult) => (session_id === null ? 'The plan is active.' : undefined),
    summary: 'Upgrade a trial',
    description:
      'Opens a checkout to pay for a trial, active or expired, or for an ended subscription. While a checkout for the same choice is open, it is returned again. A free plan is activated at once: `session_id` is null.',
    bodies: { 401: 'message', 403: 'full' },
  })
    .meta({
      idempotency: 'inSteps',
      events: ['subscription.upgrade_started', 'subscription.paid'],
      reasons: ['unknown_plan', 'trial_already_paid', 'payment_due'],
    })
    .input(TrialUpgrade)
    .output(CheckoutResult)
    .mutation(({ ctx, input }) => upgradeTrial(ctx, input)),

  setTrial: rest(superadminProcedure, '/services/platforms/v1/subscriptions/set-trial', {
    message: 'Trial set.',
    summary: 'Set a trial',
    description: 'Starts a trial of a platform, or moves its end.',
    namesRow: false,
  })
    .meta({ events: ['subscription.trial_set'], reasons: ['unknown_plan', 'unknown_reference', 'trial_already_paid'] })
    .input(TrialSet)
    .output(z.object({ subscription: Subscription }))
    .mutation(({ ctx, input }) => setTrial(ctx, input)),

  list: rest(billingProcedure, '/services/platforms/v1/subscriptions/list', {
    message: 'Subscriptions.',
    summary: 'List subscriptions',
    description:
      'The subscriptions that the caller may pay for, page by page: of the platforms of their own projects, or all.',
    namesRow: false,
  })
    .meta({ onPrimary: true })
    .input(SubscriptionList)
    .output(SubscriptionPage)
    .query(({ ctx, input }) => listSubscriptions(ctx, input)),
});

export const planRouter = router({
  set: rest(superadminProcedure, '/services/platforms/v1/plans/set', {
    message: 'Plan set.',
    summary: 'Set a plan',
    description: 'Adds a plan to the catalogue, or changes it.',
  })
    .meta({ proof: 'always', events: ['plan.set'] })
    .input(PlanSet)
    .output(z.object({ plan: Plan }))
    .mutation(({ ctx, input }) => setPlan(ctx, input)),

  list: rest(billingProcedure, '/services/platforms/v1/plans/list', {
    message: 'Plans.',
    summary: 'List plans',
    description: 'The plans of the catalogue, or of one product, page by page.',
  })
    .input(PlanList)
    .output(PlanPage)
    .query(({ ctx, input }) => listPlans(ctx, input)),
});
