import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Button, Hint, set } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { More, usePages, Waiting } from '../parts/loaded.tsx';
import { say } from '../parts/message.tsx';
import { Table } from '../parts/table.tsx';
import { timeText } from '../parts/time.tsx';
import { inProject } from '../project.ts';
import type { client } from '../service.ts';
import { asPage, DeskPage, Steps } from './operators.tsx';

type Subscription = Awaited<ReturnType<typeof client.subscriptions.list.query>>['subscriptions'][number];
type Plan = Awaited<ReturnType<typeof client.plans.list.query>>['plans'][number];

export function PlanPage() {
  const pages = usePages((cursor) => asPage(inProject().subscriptions.list.query({ limit: 50, cursor })), []);
  // No project's feed tells of payments: the state is read when the person comes back from the checkout.
  useEffect(() => {
    addEventListener('focus', pages.reload);
    return () => removeEventListener('focus', pages.reload);
  }, []);
  return (
    <DeskPage title="Plan">
      <Waiting loaded={pages}>
        {pages.data.value?.length === 0 && <Hint>There is nothing to pay for here.</Hint>}
        {pages.data.value?.map((one) => (
          <Subscribed key={one.id} subscription={one} onChange={pages.reload} />
        ))}
        {pages.next.value && <More pages={pages} noun="subscription" />}
      </Waiting>
    </DeskPage>
  );
}

function stateOf({ status, trial_ends_at, plan, period, paid_at }: Subscription): string {
  const chosen = plan ? `the plan ${plan}, by the ${period}` : 'no plan';
  if (status === 'trial') return `On trial until ${timeText(trial_ends_at)}.`;
  if (status === 'expired') return `The trial ended on ${timeText(trial_ends_at)}. Choose a plan to go on.`;
  if (status === 'free') return `Active: ${chosen}. There is nothing to pay.`;
  if (status === 'paid') return `Paid: ${chosen}${paid_at ? `, since ${timeText(paid_at)}` : ''}.`;
  if (status === 'past_due')
    return `A payment for ${chosen} has failed or is disputed. Settle it with the payment provider.`;
  return status === 'ended' ? `Ended: ${chosen}. Choose a plan to go on.` : status;
}

const priceOf = ({ price_cents, currency, period }: Plan) =>
  price_cents === 0
    ? 'free'
    : `${(price_cents / 100).toLocaleString(undefined, { style: 'currency', currency })} for each ${period}`;

function Subscribed({ subscription, onChange }: { subscription: Subscription; onChange: () => Promise<void> }) {
  const { product, status } = subscription;
  const checkout = useSignal<string | undefined>(undefined);
  const close = set(checkout, undefined);
  const plans = usePages<Plan>(async (cursor) => {
    const { plans, next_cursor } = await inProject().plans.list.query({ product, limit: 50, cursor });
    return { rows: plans.filter(({ is_active }) => is_active), next: next_cursor };
  }, []);
  const choose = async ({ plan, period }: Plan) => {
    const opened = await inProject().subscriptions.upgradeTrial.mutate({ product, plan, period });
    if (opened.session_id === null) say(`The plan ${plan} is active.`);
    else checkout.value = opened.checkout_url;
    await onChange();
  };
  const offer = (plan: Plan) => {
    const isChosen = plan.plan === subscription.plan && plan.period === subscription.period && status !== 'ended';
    if (isChosen) return 'Your plan';
    const isOffered = ['trial', 'expired', 'free', 'ended'].includes(status);
    const question = plan.price_cents === 0 ? `The plan ${plan.plan} is active at once.` : undefined;
    const steps = [{ label: 'Choose', run: () => choose(plan), question, isOffered }];
    return <Steps as="link" of={`${plan.plan}, ${priceOf(plan)}`} steps={steps} />;
  };
  return (
    <section>
      <h2 dir="auto">{product}</h2>
      <p>{stateOf(subscription)}</p>
      <Table
        noun="plan"
        pages={plans}
        columns={[
          ['Plan', ({ plan, period }) => `${plan}, by the ${period}`],
          ['Price', priceOf],
          ['', offer],
        ]}
        none="No plan can be chosen at the moment."
      />
      {checkout.value && (
        <Dialog title="The checkout is ready" onClose={close}>
          <p>It opens in a new tab: come back to this one when you have paid. It stays open for 23 hours.</p>
          <div class="choices">
            <a class="button" href={checkout.value} target="_blank" rel="noreferrer" onClick={close}>
              Go to the checkout
            </a>
            <Button as="quiet" onClick={close} children="Not now" />
          </div>
        </Dialog>
      )}
    </section>
  );
}
