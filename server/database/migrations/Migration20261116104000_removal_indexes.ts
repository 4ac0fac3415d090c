import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Indexes that find rows to remove, and the rows that refer to them. */
export class Migration20261116104000_removal_indexes extends StepwiseMigration {
  override name = 'Migration20261116104000_removal_indexes';

  override async up(): Promise<void> {
    const deleted = 'where deleted_at is not null';
    const indexes = {
      sessions_expired_index: '"sessions" ("expires_at") where second_factor_at is null',
      sessions_remembered_index: '"sessions" ("second_factor_at") where second_factor_at is not null',
      idempotency_usage_hour_index: '"idempotency_usage" ("hour")',
      template_runs_started_at_index: '"template_runs" ("started_at")',
      checkouts_unpaid_index: `"checkouts" ("created_at") where status <> 'paid'`,
      checkouts_ended_index: '"checkouts" ("ended_at") where ended_at is not null',
      boards_deleted_index: `"boards" ("master_board_id", "deleted_at") ${deleted}`,
      groups_deleted_index: `"groups" ("master_group_id", "deleted_at") ${deleted}`,
      groups_board_id_index: '"groups" ("board_id")',
      cards_deleted_index: `"cards" ("master_card_id", "deleted_at") ${deleted}`,
      cards_group_id_index: '"cards" ("group_id") where group_id is not null',
      tags_deleted_index: `"tags" ("deleted_at") ${deleted}`,
      comments_deleted_index: `"comments" ("deleted_at") ${deleted}`,
      comments_card_id_index: '"comments" ("card_id")',
      comments_root_comment_id_index: '"comments" ("root_comment_id") where root_comment_id is not null',
    };
    for (const [name, on] of Object.entries(indexes)) await this.createIndex(name, `on ${on}`);
  }
}
