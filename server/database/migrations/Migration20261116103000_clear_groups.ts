import { StepwiseMigration } from '../stepwiseMigration.ts';

export class Migration20261116103000_clear_groups extends StepwiseMigration {
  override name = 'Migration20261116103000_clear_groups';

  override async up(): Promise<void> {
    await this.inTransaction(
      `alter table "groups" add column if not exists "is_clearing" boolean not null default false`,
    );
    await this.createIndex('groups_clearing_index', 'on "groups" ("id") where is_clearing');
  }
}
