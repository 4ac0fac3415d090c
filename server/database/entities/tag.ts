import { defineEntity, p } from '@mikro-orm/core';
import { identity, position, refersTo, softDeleted } from './columns.ts';
import { DELETED, LIVE } from './deletion.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

export const Tag = defineEntity({
  name: 'Tag',
  tableName: 'tags',
  properties: {
    id: identity(),
    project_id: () => refersTo(Project, 'project_id'),
    name: p.string().length(255),
    color: p.string().length(50).nullable(),
    icon: p.string().length(100).nullable(),
    position: position(),
    is_active: p.boolean().default(true),
    created_by: () => refersTo(User, 'created_by').nullable(),
    ...softDeleted(),
  },
  indexes: [
    { properties: ['project_id', 'position', 'id'], where: LIVE },
    { name: 'tags_deleted_index', properties: ['deleted_at'], where: DELETED },
  ],
  uniques: [{ properties: ['id', 'project_id'] }],
});
