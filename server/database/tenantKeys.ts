/** A foreign key with several columns: what refers to each other belongs to the same tenant. */
export type TenantKey = { table: string; columns: string[]; target: string; key: string[]; onDelete?: string };

/**
 * The composite foreign keys, which entities can't express; migrations create them. A row with a null in one of the columns is
 * not checked. So templates, which have no project, have keys of their own.
 */
export const TENANT_KEYS: Record<string, TenantKey> = {
  boards_same_tenant_platform: {
    table: 'boards',
    columns: ['project_id', 'platform_id'],
    target: 'projects',
    key: ['id', 'platform_id'],
  },
  groups_same_tenant_platform: {
    table: 'groups',
    columns: ['project_id', 'platform_id'],
    target: 'projects',
    key: ['id', 'platform_id'],
  },
  groups_same_tenant_board: {
    table: 'groups',
    columns: ['board_id', 'project_id'],
    target: 'boards',
    key: ['id', 'project_id'],
  },
  groups_same_tenant_template: {
    table: 'groups',
    columns: ['template_board_id', 'is_master'],
    target: 'boards',
    key: ['id', 'is_master'],
  },
  cards_same_tenant_platform: {
    table: 'cards',
    columns: ['project_id', 'platform_id'],
    target: 'projects',
    key: ['id', 'platform_id'],
  },
  cards_same_tenant_group: {
    table: 'cards',
    columns: ['group_id', 'project_id'],
    target: 'groups',
    key: ['id', 'project_id'],
  },
  cards_same_tenant_template: {
    table: 'cards',
    columns: ['template_group_id', 'is_master'],
    target: 'groups',
    key: ['id', 'is_master'],
  },
  cards_same_tenant_tag: {
    table: 'cards',
    columns: ['tag_id', 'project_id'],
    target: 'tags',
    key: ['id', 'project_id'],
  },
  cards_same_tenant_owner: {
    table: 'cards',
    columns: ['project_id', 'owner_id'],
    target: 'members',
    key: ['project_id', 'user_id'],
    // Removing a member clears the owner of their cards.
    onDelete: 'SET NULL (owner_id)',
  },
  comments_same_tenant_card: {
    table: 'comments',
    columns: ['card_id', 'project_id'],
    target: 'cards',
    key: ['id', 'project_id'],
  },
  comments_same_tenant_parent: {
    table: 'comments',
    columns: ['parent_comment_id', 'card_id'],
    target: 'comments',
    key: ['id', 'card_id'],
  },
  comments_same_tenant_root: {
    table: 'comments',
    columns: ['root_comment_id', 'card_id'],
    target: 'comments',
    key: ['id', 'card_id'],
  },
};
