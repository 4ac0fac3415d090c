/** A foreign key with several columns: what refers to each other belongs to the same tenant. */
export type TenantKey = {
  table: string;
  columns: string[];
  target: string;
  key: string[];
  onDelete?: string;
  /** What is wrong with a row that it would refuse although both rows exist. */
  problem: string;
};

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
    problem: 'the project is of another platform',
  },
  groups_same_tenant_platform: {
    table: 'groups',
    columns: ['project_id', 'platform_id'],
    target: 'projects',
    key: ['id', 'platform_id'],
    problem: 'the project is of another platform',
  },
  groups_same_tenant_board: {
    table: 'groups',
    columns: ['board_id', 'project_id'],
    target: 'boards',
    key: ['id', 'project_id'],
    problem: 'the board is of another project',
  },
  groups_same_tenant_template: {
    table: 'groups',
    columns: ['template_board_id', 'is_master'],
    target: 'boards',
    key: ['id', 'is_master'],
    problem: 'the board of a master group is no master board',
  },
  cards_same_tenant_platform: {
    table: 'cards',
    columns: ['project_id', 'platform_id'],
    target: 'projects',
    key: ['id', 'platform_id'],
    problem: 'the project is of another platform',
  },
  cards_same_tenant_group: {
    table: 'cards',
    columns: ['group_id', 'project_id'],
    target: 'groups',
    key: ['id', 'project_id'],
    problem: 'the group is of another project',
  },
  cards_same_tenant_template: {
    table: 'cards',
    columns: ['template_group_id', 'is_master'],
    target: 'groups',
    key: ['id', 'is_master'],
    problem: 'the group of a master card is no master group',
  },
  cards_same_tenant_tag: {
    table: 'cards',
    columns: ['tag_id', 'project_id'],
    target: 'tags',
    key: ['id', 'project_id'],
    problem: 'the tag is of another project',
  },
  cards_same_tenant_owner: {
    table: 'cards',
    columns: ['project_id', 'owner_id'],
    target: 'members',
    key: ['project_id', 'user_id'],
    // Removing a member clears the owner of their cards.
    onDelete: 'SET NULL (owner_id)',
    problem: 'the owner is no member of the project',
  },
  comments_same_tenant_card: {
    table: 'comments',
    columns: ['card_id', 'project_id'],
    target: 'cards',
    key: ['id', 'project_id'],
    problem: 'the card is of another project',
  },
  comments_same_tenant_parent: {
    table: 'comments',
    columns: ['parent_comment_id', 'card_id'],
    target: 'comments',
    key: ['id', 'card_id'],
    problem: 'the parent is a comment of another card',
  },
  comments_same_tenant_root: {
    table: 'comments',
    columns: ['root_comment_id', 'card_id'],
    target: 'comments',
    key: ['id', 'card_id'],
    problem: 'the first comment of the thread is of another card',
  },
  rollout_changes_target: {
    table: 'rollout_changes',
    columns: ['rollout_id', 'project_id'],
    target: 'rollout_targets',
    key: ['rollout_id', 'project_id'],
    onDelete: 'CASCADE',
    problem: 'the rollout did not reach the project',
  },
};
