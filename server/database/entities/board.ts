import { defineEntity, p } from '@mikro-orm/core';
import { position, refersTo, type SelfReference, softDeleted, syncedValues } from './columns.ts';
import { DELETED, LIVE } from './deletion.ts';
import { tenantOrTemplate, tenantOrTemplateCheck } from './tenant.ts';
import { User } from './user.ts';

export const Board = defineEntity({
  name: 'Board',
  tableName: 'boards',
  properties: {
    ...tenantOrTemplate(),
    master_board_id: (): SelfReference<'master_board_id'> => refersTo(Board, 'master_board_id').nullable(),
    title: p.text(),
    description: p.text().nullable(),
    tool_key: p.text().nullable(),
    position: position(),
    brought: syncedValues(),
    /** Its name in template files; of master boards only. */
    template_key: p.string().length(100).nullable(),
    /** The last release of a master board that a rollout brought to all projects; null if a sync or push came after it. */
    rolled_out_id: p.integer().nullable(),
    created_by: () => refersTo(User, 'created_by').nullable(),
    ...softDeleted(),
  },
  checks: [tenantOrTemplateCheck('boards', 'master_board_id')],
  indexes: [
    { properties: ['project_id', 'position', 'id'], where: LIVE },
    { name: 'boards_master_index', properties: ['position', 'id'], where: `is_master and ${LIVE}` },
    { name: 'boards_deleted_index', properties: ['master_board_id', 'deleted_at'], where: DELETED },
  ],
  uniques: [
    { name: 'boards_one_copy', properties: ['master_board_id', 'project_id'] },
    { properties: ['id', 'project_id'] },
    { properties: ['id', 'is_master'] },
    {
      name: 'boards_template_key',
      properties: ['template_key'],
      where: `template_key is not null and ${LIVE}`,
    },
  ],
});
