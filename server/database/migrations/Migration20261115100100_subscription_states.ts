import { Migration } from '@mikro-orm/migrations';

export class Migration20261115100100_subscription_states extends Migration {
  override name = 'Migration20261115100100_subscription_states';

  override up(): void | Promise<void> {
    this.addSql(`alter table "subscriptions" drop constraint "subscriptions_paid_check";`);
    this.addSql(`alter table "subscriptions" drop constraint "subscriptions_status_check";`);
    this.addSql(
      `alter table "subscriptions" add constraint "subscriptions_paid_check" check ((status = 'trial') = (plan_id is null) and (status = 'trial') = (paid_at is null));`,
    );
    this.addSql(
      `alter table "subscriptions" add constraint "subscriptions_status_check" check ("status" in ('trial', 'paid', 'past_due', 'ended'));`,
    );

    this.addSql(`alter table "checkouts" drop constraint "checkouts_provider_check";`);
    this.addSql(
      `alter table "checkouts" add "provider_subscription_id" text null, add "is_past_due" boolean not null default false, add "past_due_changed_at" timestamptz(3) null, add "is_disputed" boolean not null default false, add "disputed_changed_at" timestamptz(3) null, add "ended_at" timestamptz(3) null;`,
    );
    this.addSql(
      `alter table "checkouts" add constraint "checkouts_provider_subscription_unique" unique ("provider", "provider_subscription_id");`,
    );
    this.addSql(
      `alter table "checkouts" add constraint "checkouts_provider_check" check ("provider" in ('stripe', 'test', 'none'));`,
    );
  }
}
