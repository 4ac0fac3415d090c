import { StepwiseMigration } from '../stepwiseMigration.ts';

/** What holds once all replies know their thread. */
export class Migration20261116032002_check_comment_threads extends StepwiseMigration {
  override name = 'Migration20261116032002_check_comment_threads';

  override async up(): Promise<void> {
    await this.createIndex(
      'comments_root_comment_id_id_index',
      'on "comments" ("root_comment_id", "id") where root_comment_id is not null and deleted_at is null',
    );
    await this.addConstraint(
      'comments',
      'comments_thread_check',
      'check ((root_comment_id is null) = (parent_comment_id is null) and (depth = 0) = (parent_comment_id is null))',
    );
    await this.addConstraint(
      'comments',
      'comments_same_tenant_root',
      'foreign key (root_comment_id, card_id) references comments (id, card_id)',
    );
  }
}
