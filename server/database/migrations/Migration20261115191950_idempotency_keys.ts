import { Migration } from '@mikro-orm/migrations';

export class Migration20261115191950_idempotency_keys extends Migration {
  override up(): void {
    this.addSql(
      `create table "idempotency_keys" ("user_id" int not null, "procedure" varchar(100) not null, "key" varchar(255) not null, "input_hash" varchar(64) not null, "created_at" timestamptz(3) not null default now(), "holder" uuid null, "held_until" timestamptz(3) null, "finished_at" timestamptz(3) null, "answer" text null, primary key ("user_id", "procedure", "key"));`,
    );
    this.addSql(`create index "idempotency_keys_created_at_index" on "idempotency_keys" ("created_at");`);
    this.addSql(
      `alter table "idempotency_keys" add constraint "idempotency_keys_user_id_foreign" foreign key ("user_id") references "users" ("id") on update no action on delete cascade;`,
    );
    this.addSql(
      `alter table "idempotency_keys" add constraint "idempotency_keys_answer_check" check (answer is null or finished_at is not null);`,
    );
    this.addSql(
      `alter table "idempotency_keys" add constraint "idempotency_keys_holder_check" check ((holder is null) = (held_until is null));`,
    );
  }
}
