import { StepwiseMigration } from '../stepwiseMigration.ts';

export class Migration20261119020000_level_version extends StepwiseMigration {
  override name = 'Migration20261119020000_level_version';

  override async up(): Promise<void> {
    // The version that raised the level.
    await this.inTransaction(`alter table "database_state" add column if not exists "version" text null;`);
  }
}
