import { StepwiseMigration } from '../stepwiseMigration.ts';

/**
 * Live copies get the identifier of their template. Only copies of deleted templates can have the same one then: the copy of a
 * live template keeps it, else the oldest; the others get a new one.
 */
export class Migration20261116100000_unique_copy_identifiers extends StepwiseMigration {
  override name = 'Migration20261116100000_unique_copy_identifiers';

  override async up(): Promise<void> {
    await this.createUniqueIndex(
      'cards_copy_identifier',
      'on "cards" ("project_id", "unique_identifier") where master_card_id is not null and deleted_at is null',
      () => this.removeDuplicates(),
    );
    await this.dropIndex('cards_copies_index');
    await this.createIndex(
      'cards_deleted_identifier_index',
      'on "cards" ("unique_identifier") where is_master and deleted_at is not null',
    );
  }

  private async removeDuplicates(): Promise<void> {
    await this.inBatches('cards', (run, first, last) =>
      run(
        `update cards c set unique_identifier = t.unique_identifier from cards t
        where c.id between ? and ? and t.id = c.master_card_id
          and c.deleted_at is null and c.unique_identifier <> t.unique_identifier`,
        [first, last],
      ),
    );
    const duplicates = await this.execute(
      `select id from (
        select c.id, row_number() over (
          partition by c.project_id, c.unique_identifier order by t.deleted_at is not null, c.id) as number
        from cards c join cards t on t.id = c.master_card_id where c.deleted_at is null
      ) as numbered where number > 1 order by id`,
    );
    for (let start = 0; start < duplicates.length; start += 500) {
      const ids = duplicates.slice(start, start + 500).map((row) => (row as { id: number }).id);
      await this.inTransaction(
        `update cards set unique_identifier = gen_random_uuid()::text where id in (${ids.join(', ')})`,
      );
    }
  }
}
