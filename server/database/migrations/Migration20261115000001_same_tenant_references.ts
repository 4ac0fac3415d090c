import { Migration } from '@mikro-orm/migrations';

/**
 * Composite foreign keys that entities can't express: rows that refer to each other belong to the same tenant. `null` on
 * either side, as in master rows, is not checked.
 */
export class Migration20261115000001_same_tenant_references extends Migration {
  override up(): void {
    for (const table of ['boards', 'groups', 'cards']) {
      this.sameTenant(table, 'platform', '(project_id, platform_id) references projects (id, platform_id)');
    }
    this.sameTenant('groups', 'board', '(board_id, project_id) references boards (id, project_id)');
    this.sameTenant('cards', 'group', '(group_id, project_id) references groups (id, project_id)');
    this.sameTenant('cards', 'tag', '(tag_id, project_id) references tags (id, project_id)');
    // Removing a member clears the owner of their cards.
    this.sameTenant(
      'cards',
      'owner',
      '(project_id, owner_id) references members (project_id, user_id) on delete set null (owner_id)',
    );
    this.sameTenant('comments', 'card', '(card_id, project_id) references cards (id, project_id)');
    this.sameTenant('comments', 'parent', '(parent_comment_id, card_id) references comments (id, card_id)');
  }

  private sameTenant(table: string, name: string, reference: string) {
    this.addSql(`alter table ${table} add constraint ${table}_same_tenant_${name} foreign key ${reference}`);
  }
}
