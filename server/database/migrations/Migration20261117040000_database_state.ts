import { Migration } from '@mikro-orm/migrations';

/** At most one row, about the database itself: see `level.ts`. */
export class Migration20261117040000_database_state extends Migration {
  override up(): void {
    this.addSql(
      `create table "database_state" ("id" int primary key check ("id" = 1), "level" int not null default 0, "webhooks_paused_at" timestamptz(3) null);`,
    );
  }
}
