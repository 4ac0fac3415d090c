import { defineEntity, p } from '@mikro-orm/core';
import { created, identity, refersTo } from './columns.ts';

/** A customer. */
export const Platform = defineEntity({
  name: 'Platform',
  tableName: 'platforms',
  properties: { id: identity(), name: p.text(), ...created() },
});

export const Project = defineEntity({
  name: 'Project',
  tableName: 'projects',
  properties: {
    id: identity(),
    platform_id: () => refersTo(Platform, 'platform_id'),
    name: p.text(),
    /** An inactive project can't be used and gets no templates. */
    is_active: p.boolean().default(true),
    ...created(),
  },
  indexes: [{ properties: ['platform_id'] }],
  // For the foreign keys of tenant rows, so that project and platform always match.
  uniques: [{ properties: ['id', 'platform_id'] }],
});

/** An enabled tool of a project; it gets the master boards with the same `tool_key`. */
export const ProjectTool = defineEntity({
  name: 'ProjectTool',
  tableName: 'project_tools',
  properties: {
    project_id: () => refersTo(Project, 'project_id').primary().deleteRule('cascade'),
    tool_key: p.text().primary(),
  },
  indexes: [{ properties: ['tool_key', 'project_id'] }],
});
