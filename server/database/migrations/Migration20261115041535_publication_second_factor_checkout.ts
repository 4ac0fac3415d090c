import { StepwiseMigration } from '../stepwiseMigration.ts';

export class Migration20261115041535_publication_second_factor_checkout extends StepwiseMigration {
  override name = 'Migration20261115041535_publication_second_factor_checkout';

  override async up(): Promise<void> {
    await this.inTransaction(
      `alter table "theme_versions" add column if not exists "published_at" timestamptz(3) null`,
    );
    await this.inBatches('theme_versions', (run, first, last) =>
      run(
        `update "theme_versions" set "published_at" = "created_at"
        where id between ? and ? and "theme_status" <> 'draft' and "published_at" is null`,
        [first, last],
      ),
    );
    await this.addConstraint(
      'theme_versions',
      'theme_versions_published_check',
      `check (theme_status <> 'published' or published_at is not null)`,
    );

    await this.inTransaction(`alter table "users" add column if not exists "totp_pending_secret" text null`);

    await this.inTransaction(
      `alter table "sessions" drop column if exists "has_second_factor", add column if not exists "second_factor_at" timestamptz(3) null`,
    );
    await this.dropIndex('sessions_expires_at_index');
    await this.replacePartialSessionIndex();

    await this.inTransaction(
      `alter table "checkouts" add column if not exists "reference" uuid not null default gen_random_uuid(),
      add column if not exists "price_cents" int not null, add column if not exists "currency" varchar(3) not null`,
    );
    await this.addUnique('checkouts', 'checkouts_reference_unique', '("reference")');
  }

  private async replacePartialSessionIndex(): Promise<void> {
    const partial = await this.execute(
      `select from pg_index where indexrelid = to_regclass('sessions_user_id_index') and indpred is not null`,
    );
    if (partial.length > 0) await this.dropIndex('sessions_user_id_index');
    await this.createIndex('sessions_user_id_index', 'on "sessions" ("user_id")');
  }
}
