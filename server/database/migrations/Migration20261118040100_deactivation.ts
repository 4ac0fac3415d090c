import { StepwiseMigration } from '../stepwiseMigration.ts';

export class Migration20261118040100_deactivation extends StepwiseMigration {
  override name = 'Migration20261118040100_deactivation';

  override async up(): Promise<void> {
    await this.inTransaction(`alter table "users" add column if not exists "deactivated_at" timestamptz(3) null;`);
    await this.createIndex('users_superadmins_index', 'on "users" ("id") where superadmin');
  }
}
