import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Remembers which step of a tour was dismissed, so that a card with another key is shown again. */
export class Migration20261116050100_dismissed_tour_keys extends StepwiseMigration {
  override name = 'Migration20261116050100_dismissed_tour_keys';

  override async up(): Promise<void> {
    await this.inTransaction(`alter table "tour_dismissals" add column if not exists "tour_key" varchar(100) null`);
    await this.inBatches(
      'tour_dismissals',
      (run, first, last) =>
        run(
          `update "tour_dismissals" d set "tour_key" = c.tour_key from "cards" c
          where d.card_id between ? and ? and d.tour_key is null and c.id = d.card_id and c.tour_key is not null`,
          [first, last],
        ),
      { key: 'card_id' },
    );
  }
}
