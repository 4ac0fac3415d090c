import { Migration } from '@mikro-orm/migrations';

/** The history of the database: see `incarnation.ts`. */
export class Migration20261117100000_incarnations extends Migration {
  override up(): void {
    this.addSql(
      `create table "incarnations" ("number" int primary key, "id" text not null unique, "began_at" timestamptz(3) not null default now(), "server" text not null, "relation" oid not null, "timeline" int not null, "first_timeline" int not null, "timeline_step" bigint not null, "transaction_offset" bigint not null, "last_shared" xid8 null, "takes_unnamed" boolean not null default false);`,
    );
  }
}
