import { Migration } from '@mikro-orm/migrations';

export class Migration20261116034812_idempotency_places extends Migration {
  override up(): void {
    this.addSql(`alter table "idempotency_keys" add "acted_in" jsonb null;`);
  }
}
