import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Most events are of cards and comments. The others are not in the index. */
const CARD = `(case split_part(type, '.', 1) when 'card' then subject_id when 'comment' then (data->>'card_id')::int end)`;

export class Migration20261117800000_card_history extends StepwiseMigration {
  override name = 'Migration20261117800000_card_history';

  override async up(): Promise<void> {
    await this.createIndex(
      'events_card_index',
      `on "events" ("project_id", ${CARD}, "transaction_id", "id") where ${CARD} is not null`,
    );
  }
}
