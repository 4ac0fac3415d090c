import { Migration } from '@mikro-orm/migrations';

export class Migration20261115041535_publication_second_factor_checkout extends Migration {
  override name = 'Migration20261115041535_publication_second_factor_checkout';

  override up(): void | Promise<void> {
    this.addSql(`alter table "theme_versions" add "published_at" timestamptz(3) null;`);
    this.addSql(`update "theme_versions" set "published_at" = "created_at" where "theme_status" <> 'draft';`);
    this.addSql(
      `alter table "theme_versions" add constraint "theme_versions_published_check" check (theme_status <> 'published' or published_at is not null);`,
    );

    this.addSql(`alter table "users" add "totp_pending_secret" text null;`);

    this.addSql(`alter table "sessions" drop column "has_second_factor";`);
    this.addSql(`alter table "sessions" add "second_factor_at" timestamptz(3) null;`);
    this.addSql(`drop index "sessions_expires_at_index";`);
    this.addSql(`drop index "sessions_user_id_index";`);
    this.addSql(`create index "sessions_user_id_index" on "sessions" ("user_id");`);

    this.addSql(
      `alter table "checkouts" add "reference" uuid not null default gen_random_uuid(), add "price_cents" int not null, add "currency" varchar(3) not null;`,
    );
    this.addSql(`alter table "checkouts" add constraint "checkouts_reference_unique" unique ("reference");`);
  }
}
