import { Migration } from '@mikro-orm/migrations';

/** Who delivers to a webhook, whether it still lives, and how long its receiver takes. */
export class Migration20261117300000_webhook_leases extends Migration {
  override up(): void {
    this.addSql(
      `alter table "webhooks" add column "lease_holder" varchar(36) null, add column "kept_until" timestamptz(3) null, add column "pace_milliseconds" int null;`,
    );
  }
}
