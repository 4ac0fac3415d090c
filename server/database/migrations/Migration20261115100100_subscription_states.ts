import { StepwiseMigration } from '../stepwiseMigration.ts';

export class Migration20261115100100_subscription_states extends StepwiseMigration {
  override name = 'Migration20261115100100_subscription_states';

  override async up(): Promise<void> {
    await this.addConstraint(
      'subscriptions',
      'subscriptions_paid_check',
      `check ((status = 'trial') = (plan_id is null) and (status = 'trial') = (paid_at is null))`,
    );
    await this.addConstraint(
      'subscriptions',
      'subscriptions_status_check',
      `check ("status" in ('trial', 'paid', 'past_due', 'ended'))`,
    );

    await this.inTransaction(
      `alter table "checkouts" add column if not exists "provider_subscription_id" text null,
      add column if not exists "is_past_due" boolean not null default false,
      add column if not exists "past_due_changed_at" timestamptz(3) null,
      add column if not exists "is_disputed" boolean not null default false,
      add column if not exists "disputed_changed_at" timestamptz(3) null,
      add column if not exists "ended_at" timestamptz(3) null`,
    );
    await this.addUnique(
      'checkouts',
      'checkouts_provider_subscription_unique',
      '("provider", "provider_subscription_id")',
    );
    await this.addConstraint(
      'checkouts',
      'checkouts_provider_check',
      `check ("provider" in ('stripe', 'test', 'none'))`,
    );
  }
}
