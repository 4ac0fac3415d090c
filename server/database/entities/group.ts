import { defineEntity, p } from '@mikro-orm/core';
import { Board } from './board.ts';
import { DELETED, LIVE, position, refersTo, type SelfReference, softDeleted, syncedValues } from './columns.ts';
import { tenantOrTemplate, tenantOrTemplateCheck } from './tenant.ts';
import { User } from './user.ts';

export const Group = defineEntity({
  name: 'Group',
  tableName: 'groups',
  properties: {
    ...tenantOrTemplate(),
    master_group_id: (): SelfReference<'master_group_id'> => refersTo(Group, 'master_group_id').nullable(),
    board_id: () => refersTo(Board, 'board_id'),
    is_collapsed: p.boolean().default(false),
    title: p.string().length(255),
    description: p.text().nullable(),
    type: p.string().length(50).nullable(),
    color: p.string().length(50).nullable(),
    icon: p.string().length(100).nullable(),
    position: position(),
    brought: syncedValues(),
    created_by: () => refersTo(User, 'created_by').nullable(),
    ...softDeleted(),
  },
  checks: [tenantOrTemplateCheck('groups', 'master_group_id')],
  indexes: [
    { properties: ['board_id', 'position', 'id'], where: LIVE },
    // For the removal of boards.
    { properties: ['board_id'] },
    { name: 'groups_deleted_index', properties: ['master_group_id', 'deleted_at'], where: DELETED },
  ],
  uniques: [{ name: 'groups_one_copy', properties: ['master_group_id', 'project_id'] }],
});
