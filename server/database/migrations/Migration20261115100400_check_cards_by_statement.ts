import { Migration } from '@mikro-orm/migrations';

/**
 * Replaced the foreign keys of cards by triggers. They let wrong references in, so new databases keep the foreign keys; where it
 * has run, `cards_foreign_keys` replaces the triggers.
 */
export class Migration20261115100400_check_cards_by_statement extends Migration {
  override name = 'Migration20261115100400_check_cards_by_statement';

  override up(): void {}
}
