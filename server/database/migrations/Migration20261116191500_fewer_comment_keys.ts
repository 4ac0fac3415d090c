import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Each key slows down the inserts. These are covered by the keys with the project and with the card. */
export class Migration20261116191500_fewer_comment_keys extends StepwiseMigration {
  override name = 'Migration20261116191500_fewer_comment_keys';

  override async up(): Promise<void> {
    for (const column of ['card_id', 'project_id', 'parent_comment_id'])
      await this.inTransaction(`alter table "comments" drop constraint if exists "comments_${column}_foreign"`);
  }
}
