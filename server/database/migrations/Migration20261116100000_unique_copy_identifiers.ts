import { Migration } from '@mikro-orm/migrations';

/**
 * Live copies get the identifier of their template. Only copies of deleted templates can have the same one then: the copy of a
 * live template keeps it, else the oldest; the others get a new one.
 */
export class Migration20261116100000_unique_copy_identifiers extends Migration {
  override name = 'Migration20261116100000_unique_copy_identifiers';

  override up(): void {
    // Takes minutes with many cards. The lock keeps nodes of the previous version from adding copies meanwhile.
    this.addSql(`set local statement_timeout = 0;`);
    this.addSql(`lock table cards in share row exclusive mode;`);
    this.addSql(`
      update cards c set unique_identifier = t.unique_identifier from cards t
      where t.id = c.master_card_id and c.deleted_at is null and c.unique_identifier <> t.unique_identifier;`);
    this.addSql(`
      update cards set unique_identifier = gen_random_uuid()::text
      where id in (
        select id from (
          select c.id, row_number() over (
            partition by c.project_id, c.unique_identifier order by t.deleted_at is not null, c.id) as number
          from cards c join cards t on t.id = c.master_card_id where c.deleted_at is null
        ) as numbered where number > 1
      );`);
    this.addSql(`drop index "cards_copies_index";`);
    this.addSql(
      `create unique index "cards_copy_identifier" on "cards" ("project_id", "unique_identifier") where master_card_id is not null and deleted_at is null;`,
    );
    this.addSql(
      `create index "cards_deleted_identifier_index" on "cards" ("unique_identifier") where is_master and deleted_at is not null;`,
    );
  }
}
