import { Migration } from '@mikro-orm/migrations';

export class Migration20261116201000_own_rate_limits extends Migration {
  override up(): void {
    this.addSql(`alter table "users" add column "rate_limit_per_minute" int null;`);
  }
}
