import { Migration } from '@mikro-orm/migrations';

/** What holds once all replies know their thread. */
export class Migration20261116032002_check_comment_threads extends Migration {
  override name = 'Migration20261116032002_check_comment_threads';

  override up(): void {
    this.addSql(
      `create index "comments_root_comment_id_id_index" on "comments" ("root_comment_id", "id") where root_comment_id is not null and deleted_at is null;`,
    );
    this.addConstraint(
      'comments_thread_check',
      'check ((root_comment_id is null) = (parent_comment_id is null) and (depth = 0) = (parent_comment_id is null))',
    );
    this.addConstraint(
      'comments_same_tenant_root',
      'foreign key (root_comment_id, card_id) references comments (id, card_id)',
    );
  }

  /** Existing rows are checked afterwards, without blocking writes. */
  private addConstraint(name: string, definition: string): void {
    this.addSql(`alter table "comments" add constraint "${name}" ${definition} not valid;`);
    this.addSql(`alter table "comments" validate constraint "${name}";`);
  }
}
