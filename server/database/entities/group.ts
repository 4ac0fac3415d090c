import { defineEntity, p } from '@mikro-orm/core';
import { Board } from './board.ts';
import { position, refersTo, refersWithinTenant, type SelfReference, softDeleted, syncedValues } from './columns.ts';
import { DELETED, LIVE } from './deletion.ts';
import { templateParentCheck, tenantOrTemplate, tenantOrTemplateCheck } from './tenant.ts';
import { User } from './user.ts';

export const Group = defineEntity({
  name: 'Group',
  tableName: 'groups',
  properties: {
    ...tenantOrTemplate(),
    master_group_id: (): SelfReference<'master_group_id'> => refersTo(Group, 'master_group_id').nullable(),
    board_id: () => refersWithinTenant(Board, 'board_id'),
    /** The board of a master group; null in others. A trigger fills it. */
    template_board_id: () => refersWithinTenant(Board, 'template_board_id').nullable(),
    is_collapsed: p.boolean().default(false),
    title: p.string().length(255),
    description: p.text().nullable(),
    type: p.string().length(50).nullable(),
    color: p.string().length(50).nullable(),
    icon: p.string().length(100).nullable(),
    position: position(),
    brought: syncedValues(),
    /** Its name in template files; of master groups only. */
    template_key: p.string().length(100).nullable(),
    created_by: () => refersTo(User, 'created_by').nullable(),
    ...softDeleted(),
    /** It is deleted, but not all of its many cards are marked as deleted yet. */
    is_clearing: p.boolean().default(false),
  },
  checks: [
    tenantOrTemplateCheck('groups', 'master_group_id'),
    templateParentCheck('groups', 'template_board_id', 'board_id'),
  ],
  indexes: [
    { properties: ['board_id', 'position', 'id'], where: LIVE },
    // For the removal of boards.
    { properties: ['board_id'] },
    { properties: ['template_board_id'], where: 'template_board_id is not null' },
    { name: 'groups_deleted_index', properties: ['master_group_id', 'deleted_at'], where: DELETED },
    { name: 'groups_clearing_index', properties: ['id'], where: 'is_clearing' },
  ],
  uniques: [
    { name: 'groups_one_copy', properties: ['master_group_id', 'project_id'] },
    { properties: ['id', 'project_id'] },
    { properties: ['id', 'is_master'] },
    {
      name: 'groups_template_key',
      properties: ['board_id', 'template_key'],
      where: `template_key is not null and ${LIVE}`,
    },
  ],
});
