import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Subscriptions with a free plan were stored as paid, and could not be upgraded. */
export class Migration20261116050000_free_subscriptions extends StepwiseMigration {
  override name = 'Migration20261116050000_free_subscriptions';

  override async up(): Promise<void> {
    await this.inTransaction(
      `alter table "subscriptions" drop constraint if exists "subscriptions_paid_check",
      drop constraint if exists "subscriptions_status_check"`,
    );
    await this.inBatches('subscriptions', (run, first, last) =>
      run(
        `update "subscriptions" s set "status" = 'free', "paid_at" = null
        where s.id between ? and ? and s.status = 'paid'
          and exists (
            select from "checkouts" c where c.subscription_id = s.id and c.plan_id = s.plan_id
              and c.status = 'paid' and c.price_cents = 0 and c.ended_at is null
          )
          and not exists (
            select from "checkouts" c where c.subscription_id = s.id
              and c.status = 'paid' and c.price_cents > 0 and c.ended_at is null
          )`,
        [first, last],
      ),
    );
    await this.addConstraint(
      'subscriptions',
      'subscriptions_paid_check',
      `check ((status = 'trial') = (plan_id is null) and (status in ('trial', 'free')) = (paid_at is null))`,
    );
    await this.addConstraint(
      'subscriptions',
      'subscriptions_status_check',
      `check ("status" in ('trial', 'free', 'paid', 'past_due', 'ended'))`,
    );
  }
}
