import { StepwiseMigration } from '../stepwiseMigration.ts';

/**
 * Columns that hold the parent of templates only, so that a foreign key can check it: the key with the project skips rows
 * without one. Triggers fill them, for nodes of the previous version, too. They read no table.
 */
export class Migration20261116101000_template_parents extends StepwiseMigration {
  override name = 'Migration20261116101000_template_parents';

  override async up(): Promise<void> {
    await this.addParent('groups', 'template_board_id', 'board_id');
    await this.addParent('cards', 'template_group_id', 'group_id');

    await this.addUnique('boards', 'boards_id_is_master_unique', '("id", "is_master")');
    await this.addUnique('groups', 'groups_id_is_master_unique', '("id", "is_master")');
    await this.addUnique('groups', 'groups_id_project_id_unique', '("id", "project_id")');

    await this.execute('alter function comments_fill_thread() set search_path = pg_catalog, pg_temp');
  }

  private async addParent(table: string, column: string, parent: string): Promise<void> {
    const name = `${table}_fill_${column}`;
    const value = (row: string) => `case when ${row}.is_master then ${row}.${parent} end`;
    await this.inTransaction(
      `alter table "${table}" add column if not exists "${column}" int null`,
      `create or replace function ${name}() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
      begin
        new.${column} := ${value('new')};
        return new;
      end $$`,
      `create or replace trigger ${name} before insert or update of is_master, ${parent}, ${column} on "${table}"
      for each row when (new.${column} is distinct from ${value('new')}) execute function ${name}()`,
    );
    // There are few templates: one statement writes them all.
    await this.inTransaction(
      `update "${table}" set "${column}" = "${parent}" where is_master and "${column}" is distinct from "${parent}"`,
    );
    await this.createIndex(`${table}_${column}_index`, `on "${table}" ("${column}") where ${column} is not null`);
  }
}
