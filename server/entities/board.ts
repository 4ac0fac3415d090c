import { defineEntity, p } from '@mikro-orm/core';
import {
  identity,
  LIVE,
  masterOrTenant,
  position,
  refersTo,
  refersWithoutKey,
  type SelfReference,
  softDeleted,
} from './columns.ts';
import { Platform, Project } from './platform.ts';
import { User } from './user.ts';

export const Board = defineEntity({
  name: 'Board',
  tableName: 'boards',
  properties: {
    id: identity(),
    project_id: () => refersWithoutKey(Project, 'project_id'),
    platform_id: () => refersWithoutKey(Platform, 'platform_id'),
    master_board_id: (): SelfReference<'master_board_id'> => refersTo(Board, 'master_board_id').nullable(),
    is_master: p.boolean().default(false),
    is_active: p.boolean().default(true),
    title: p.text(),
    description: p.text().nullable(),
    tool_key: p.text().nullable(),
    position: position(),
    created_by: () => refersTo(User, 'created_by').nullable(),
    ...softDeleted(),
  },
  checks: [masterOrTenant('boards', 'master_board_id')],
  indexes: [
    { properties: ['project_id', 'position', 'id'], where: LIVE },
    { name: 'boards_master_index', properties: ['position', 'id'], where: `is_master and ${LIVE}` },
  ],
  uniques: [
    { name: 'boards_one_copy', properties: ['master_board_id', 'project_id'] },
    { properties: ['id', 'project_id'] },
  ],
});
