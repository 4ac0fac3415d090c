import { StepwiseMigration } from '../stepwiseMigration.ts';

export class Migration20261119010000_logout_tokens extends StepwiseMigration {
  override name = 'Migration20261119010000_logout_tokens';

  override async up(): Promise<void> {
    await this.createTable(
      'logout_tokens_used',
      `create table "logout_tokens_used" ("token_hash" varchar(64) not null primary key, "expires_at" timestamptz(3) not null);`,
      `create index "logout_tokens_used_expires_at_index" on "logout_tokens_used" ("expires_at");`,
    );
  }
}
