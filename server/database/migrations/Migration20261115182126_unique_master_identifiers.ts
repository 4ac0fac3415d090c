import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Master cards have identifiers of their own: of equal ones, the oldest keeps it. */
export class Migration20261115182126_unique_master_identifiers extends StepwiseMigration {
  override name = 'Migration20261115182126_unique_master_identifiers';

  override async up(): Promise<void> {
    await this.createUniqueIndex(
      'cards_master_identifier',
      'on "cards" ("unique_identifier") where is_master and deleted_at is null',
      async () => {
        await this.inTransaction(renameDuplicates(`left(unique_identifier, 99 - length(id::text)) || '-' || id`));
        // For the rare case that another card already had the new identifier.
        await this.inTransaction(renameDuplicates('gen_random_uuid()::text'));
      },
    );
  }
}

/** There are few master cards: one statement writes them all. */
const renameDuplicates = (identifier: string) => `
  update cards set unique_identifier = ${identifier}
  where id in (
    select id from (
      select id, row_number() over (partition by unique_identifier order by id) as number
      from cards where is_master and deleted_at is null
    ) as numbered where number > 1
  )`;
