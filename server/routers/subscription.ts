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
} from '../../shared/subscription.ts';
import { listPlans, setPlan } from '../domain/plan.ts';
import { listSubscriptions, setTrial, upgradeTrial } from '../domain/subscription.ts';
import { rest } from '../restOperation.ts';
import { billingProcedure, router, superadminProcedure } from '../trpc.ts';

export const subscriptionRouter = router({
  upgradeTrial: billingProcedure
    .meta(
      rest('/services/platforms/v1/subscriptions/upgrade-trial', {
        message: 'Checkout opened.',
        summary: 'Upgrade a trial',
        description:
          'Opens a checkout to pay for a trial, active or expired, or for an ended subscription. While a checkout for the same choice is open, it is returned again. A free plan is activated at once: `session_id` is null.',
        bodies: { 401: 'message', 403: 'full' },
      }),
    )
    .input(TrialUpgrade)
    .output(CheckoutResult)
    .mutation(({ ctx, input }) => upgradeTrial(ctx, input)),

  setTrial: superadminProcedure
    .meta({ command: 'Start a trial of a platform, or move its end.' })
    .input(TrialSet)
    .output(z.object({ subscription: Subscription }))
    .mutation(({ ctx, input }) => setTrial(ctx, input)),

  list: billingProcedure
    .meta({ command: 'List subscriptions.' })
    .input(SubscriptionList)
    .output(SubscriptionPage)
    .query(({ ctx, input }) => listSubscriptions(ctx, input)),
});

export const planRouter = router({
  set: superadminProcedure
    .meta({ command: 'Add a plan to the catalogue, or change it.' })
    .input(PlanSet)
    .output(z.object({ plan: Plan }))
    .mutation(({ ctx, input }) => setPlan(ctx, input)),

  list: billingProcedure
    .meta({ command: 'List the plans of the catalogue.' })
    .input(PlanList)
    .output(PlanPage)
    .query(({ ctx, input }) => listPlans(ctx, input)),
});
