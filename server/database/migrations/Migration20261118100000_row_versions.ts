import { StepwiseMigration } from '../stepwiseMigration.ts';

/** The columns that callers can't see change: they are for syncs, and for the removal of what was deleted. */
const UNSEEN = {
  boards: ['brought', 'rolled_out_id', 'template_key'],
  groups: ['brought', 'is_clearing', 'template_board_id', 'template_key'],
  cards: ['base_id', 'base_values', 'template_group_id'],
  comments: [],
  tags: [],
};
const UNSEEN_EVERYWHERE = ['updated_at', 'deletion_id', 'version'];

/**
 * A number for each state of a row, so that two of them can be put in order. A trigger raises it, for nodes of the last release, too,
 * and for every statement. An update that changes nothing has no event, so it raises neither the number nor the time. Columns of later
 * migrations count.
 */
export class Migration20261118100000_row_versions extends StepwiseMigration {
  override name = 'Migration20261118100000_row_versions';

  override async up(): Promise<void> {
    for (const [table, unseen] of Object.entries(UNSEEN)) {
      const same = [...UNSEEN_EVERYWHERE, ...unseen].map((column) => `before.${column} := new.${column};`);
      // Names the schema of its operators: a fixed search path would double the time that the trigger takes.
      await this.inTransaction(
        `alter table "${table}" add column if not exists "version" int not null default 1`,
        `create or replace function ${table}_raise_version() returns trigger language plpgsql as $$
        declare before record := old;
        begin
          ${same.join(' ')}
          if before operator(pg_catalog.<>) new then new.version := old.version operator(pg_catalog.+) 1;
          else new.updated_at := old.updated_at; end if;
          return new;
        end $$`,
        `create or replace trigger ${table}_raise_version before update on "${table}"
        for each row execute function ${table}_raise_version()`,
      );
    }
  }
}
