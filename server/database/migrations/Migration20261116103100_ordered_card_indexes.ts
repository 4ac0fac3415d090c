import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Lists of a group, an owner or a tag read their cards in order. Each index replaces one with fewer columns. */
export class Migration20261116103100_ordered_card_indexes extends StepwiseMigration {
  override name = 'Migration20261116103100_ordered_card_indexes';

  override async up(): Promise<void> {
    await this.createIndex(
      'cards_group_index',
      'on "cards" ("group_id", "position", "id", "sort_order") where deleted_at is null',
    );
    await this.dropIndex('cards_group_id_position_id_index');
    await this.createIndex(
      'cards_owner_index',
      'on "cards" ("owner_id", "project_id", "sort_order", "id") where owner_id is not null',
    );
    await this.dropIndex('cards_owner_id_index');
    await this.createIndex('cards_tag_index', 'on "cards" ("tag_id", "sort_order", "id") where tag_id is not null');
    await this.dropIndex('cards_tag_id_index');
  }
}
