import { Migration } from '@mikro-orm/migrations';

/** Keys of before, and those that nodes of the previous version create meanwhile, keep what they may do: see `keyScopes.ts`. */
export class Migration20261117500100_key_grants extends Migration {
  override up(): void {
    this.addSql(`alter table "api_keys" add column "names_grants" boolean not null default false;`);
  }
}
