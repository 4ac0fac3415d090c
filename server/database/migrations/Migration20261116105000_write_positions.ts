import { Migration } from '@mikro-orm/migrations';

/** For reads from replicas: see `writePosition.ts`. */
export class Migration20261116105000_write_positions extends Migration {
  override up(): void {
    // Updated in place after each write of a user: room on the page saves the update of the index.
    this.addSql(
      `create unlogged table "write_positions" ("user_id" int primary key, "position" pg_lsn not null) with (fillfactor = 50);`,
    );
    this.addSql(`create unlogged table "write_epoch" ("id" int primary key check ("id" = 1), "epoch" uuid not null);`);
    this.addSql(`create table "replicated_epoch" ("id" int primary key check ("id" = 1), "epoch" uuid not null);`);
  }
}
