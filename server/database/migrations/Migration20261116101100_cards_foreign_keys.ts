import { StepwiseMigration } from '../stepwiseMigration.ts';

/**
 * Foreign keys instead of the triggers of `check_cards_by_statement`, which trusted the search path, could be disabled by the
 * owner, did not check a restore, and made each insert slower. New rows are checked by both until the triggers are gone.
 */
export class Migration20261116101100_cards_foreign_keys extends StepwiseMigration {
  override name = 'Migration20261116101100_cards_foreign_keys';

  override async up(): Promise<void> {
    for (const [table, constraints] of Object.entries(ADDED)) {
      for (const [name, definition] of Object.entries(constraints)) {
        if (!(await this.hasConstraint(table, name))) await this.addForNewRows(table, name, definition);
      }
    }

    // Covered by the keys with the project and with the template's parent.
    await this.inTransaction('alter table "groups" drop constraint if exists "groups_board_id_foreign"');
    await this.inTransaction('alter table "cards" drop constraint if exists "cards_group_id_foreign"');

    for (const [table, names] of Object.entries(TRIGGERS)) {
      await this.inTransaction(...names.map((name) => `drop trigger if exists ${name} on "${table}"`));
    }
    for (const name of FUNCTIONS) await this.execute(`drop function if exists ${name}()`);
  }

  private async hasConstraint(table: string, name: string): Promise<boolean> {
    const found = await this.execute('select from pg_constraint where conname = ? and conrelid = to_regclass(?)', [
      name,
      table,
    ]);
    return found.length > 0;
  }
}

/** The constraints by table and name; `validate_cards_foreign_keys` checks existing rows. */
export const ADDED: Record<string, Record<string, string>> = {
  groups: {
    groups_template_board_id_check:
      'check (is_master = (template_board_id is not null) and (template_board_id is null or template_board_id = board_id))',
    groups_same_tenant_template: 'foreign key (template_board_id, is_master) references boards (id, is_master)',
  },
  cards: {
    cards_template_group_id_check:
      'check (is_master = (template_group_id is not null) and (template_group_id is null or template_group_id = group_id))',
    cards_same_tenant_template: 'foreign key (template_group_id, is_master) references groups (id, is_master)',
    cards_same_tenant_group: 'foreign key (group_id, project_id) references groups (id, project_id)',
    cards_same_tenant_platform: 'foreign key (project_id, platform_id) references projects (id, platform_id)',
    cards_master_card_id_foreign: 'foreign key (master_card_id) references cards (id)',
    cards_created_by_foreign: 'foreign key (created_by) references users (id)',
  },
};

const referredTo = (name: string) => ['truncate', 'delete', 'update'].map((event) => `${name}_${event}`);

const TRIGGERS: Record<string, string[]> = {
  users: referredTo('cards_created_by_foreign'),
  projects: referredTo('cards_same_tenant_platform'),
  groups: referredTo('cards_same_tenant_group'),
  cards: ['cards_check_added', 'cards_check_changed', ...referredTo('cards_master_card_id_foreign')],
};

const FUNCTIONS = [
  'cards_check_added',
  'cards_check_changed',
  'cards_created_by_foreign',
  'cards_same_tenant_platform',
  'cards_same_tenant_group',
  'cards_master_card_id_foreign',
];
