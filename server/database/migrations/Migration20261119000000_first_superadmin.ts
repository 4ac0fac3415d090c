import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Nobody has confirmed the address of the superadmin that a start makes: it is the same everywhere, and no mail reaches it. */
export class Migration20261119000000_first_superadmin extends StepwiseMigration {
  override name = 'Migration20261119000000_first_superadmin';

  override async up(): Promise<void> {
    await this.inTransaction(
      `update "users" set "email_confirmed_at" = null where lower("email") = 'admin@deckhand.local'`,
    );
  }
}
