import { Migration } from '@mikro-orm/migrations';

/** Remembers which step of a tour was dismissed, so that a card with another key is shown again. */
export class Migration20261116050100_dismissed_tour_keys extends Migration {
  override up(): void {
    this.addSql(`alter table "tour_dismissals" add "tour_key" varchar(100) null;`);
    this.addSql(
      `update "tour_dismissals" d set "tour_key" = c.tour_key from "cards" c where c.id = d.card_id and c.tour_key is not null;`,
    );
  }
}
