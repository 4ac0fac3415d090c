import { StepwiseMigration } from '../stepwiseMigration.ts';

/** For `API_KEYS_MAX_DAYS`: the age of the secret, and when the log last warned of its end. */
export class Migration20261116200000_key_ages extends StepwiseMigration {
  override name = 'Migration20261116200000_key_ages';

  override async up(): Promise<void> {
    await this.inTransaction(
      `alter table "api_keys" add column if not exists "rotated_at" timestamptz(3) null, add column if not exists "warned_at" timestamptz(3) null`,
    );
    // A valid key that has a previous secret was changed by nothing but its last rotation.
    await this.inBatches('api_keys', (run, first, last) =>
      run(
        `update api_keys set rotated_at = updated_at where id between ? and ? and previous_hash is not null and revoked_at is null
          and rotated_at is null`,
        [first, last],
      ),
    );
  }
}
