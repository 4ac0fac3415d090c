import { Migration } from '@mikro-orm/migrations';

export class Migration20261116040047_due_at_midnight extends Migration {
  override up(): void {
    this.addSql(`alter table "cards" add "is_due_at_midnight" boolean not null default false;`);
  }
}
