import { Migration } from '@mikro-orm/migrations';

/** Subscriptions with a free plan were stored as paid, and could not be upgraded. */
export class Migration20261116050000_free_subscriptions extends Migration {
  override up(): void {
    this.addSql(`alter table "subscriptions" drop constraint "subscriptions_paid_check";`);
    this.addSql(`alter table "subscriptions" drop constraint "subscriptions_status_check";`);
    this.addSql(
      `update "subscriptions" s set "status" = 'free', "paid_at" = null where s.status = 'paid' and exists (select from "checkouts" c where c.subscription_id = s.id and c.plan_id = s.plan_id and c.status = 'paid' and c.price_cents = 0 and c.ended_at is null) and not exists (select from "checkouts" c where c.subscription_id = s.id and c.status = 'paid' and c.price_cents > 0 and c.ended_at is null);`,
    );
    this.addSql(
      `alter table "subscriptions" add constraint "subscriptions_paid_check" check ((status = 'trial') = (plan_id is null) and (status in ('trial', 'free')) = (paid_at is null)) not valid;`,
    );
    this.addSql(
      `alter table "subscriptions" add constraint "subscriptions_status_check" check ("status" in ('trial', 'free', 'paid', 'past_due', 'ended')) not valid;`,
    );
    this.addSql(`alter table "subscriptions" validate constraint "subscriptions_paid_check";`);
    this.addSql(`alter table "subscriptions" validate constraint "subscriptions_status_check";`);
  }
}
