import { Migration } from '@mikro-orm/migrations';

export class Migration20261116033918_idempotency_usage extends Migration {
  override up(): void {
    this.addSql(
      `create table "idempotency_usage" ("user_id" int not null, "hour" timestamptz(3) not null, "keys" int not null, "answer_bytes" int not null, primary key ("user_id", "hour"));`,
    );
    this.addSql(
      `alter table "idempotency_usage" add constraint "idempotency_usage_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete cascade;`,
    );
  }
}
