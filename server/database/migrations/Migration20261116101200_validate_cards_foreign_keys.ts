import { StepwiseMigration } from '../stepwiseMigration.ts';
import { ADDED } from './Migration20261116101100_cards_foreign_keys.ts';

/** Checks the existing rows, which blocks no request. If the triggers let wrong rows in, an operator has to repair them first. */
export class Migration20261116101200_validate_cards_foreign_keys extends StepwiseMigration {
  override name = 'Migration20261116101200_validate_cards_foreign_keys';

  override async up(): Promise<void> {
    for (const [table, constraints] of Object.entries(ADDED)) {
      for (const name of Object.keys(constraints)) await this.checkExistingRows(table, name);
    }
  }
}
