import { Migration } from '@mikro-orm/migrations';

export class Migration20261115181739_members_by_role extends Migration {
  override up(): void {
    this.addSql(`drop index "members_user_id_project_id_index";`);
    this.addSql(`create index "members_user_id_role_project_id_index" on "members" ("user_id", "role", "project_id");`);
  }
}
