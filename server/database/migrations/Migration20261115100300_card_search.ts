import { StepwiseMigration } from '../stepwiseMigration.ts';

/**
 * An index for text search in cards, if pg_trgm and btree_gin are available; otherwise a search scans the cards of the
 * project, as before. Copies of master cards are not indexed: a sync writes many of them, which would take three times as long,
 * and each project has few of them.
 */
export class Migration20261115100300_card_search extends StepwiseMigration {
  override name = 'Migration20261115100300_card_search';

  override async up(): Promise<void> {
    await this.inTransaction(`
      do $$ begin
        create extension if not exists pg_trgm;
        create extension if not exists btree_gin;
      exception when insufficient_privilege or feature_not_supported or undefined_file then
        raise notice 'Searches go without an index: %', sqlerrm;
      end $$`);
    const extensions = await this.execute(`select from pg_extension where extname in ('pg_trgm', 'btree_gin')`);
    if (extensions.length < 2) return;
    await this.createIndex(
      'cards_search_index',
      `on "cards" using gin (
        project_id, (title || coalesce(' ' || short_description, '') || coalesce(' ' || description, '')) gin_trgm_ops
      ) where master_card_id is null and deleted_at is null`,
    );
  }
}
