import { Migration } from '@mikro-orm/migrations';

export class Migration20261115100200_second_factor_failures extends Migration {
  override name = 'Migration20261115100200_second_factor_failures';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "users" add "totp_failures" int not null default 0, add "totp_blocked_until" timestamptz(3) null;`,
    );
  }
}
