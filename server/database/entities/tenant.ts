import { p } from '@mikro-orm/core';
import { identity, refersWithoutKey } from './columns.ts';
import { Platform, Project } from './platform.ts';

/** The first columns of boards, groups and cards: a row belongs to a project, or is a template (`is_master`) of none. */
export const tenantOrTemplate = () => ({
  id: identity(),
  project_id: () => refersWithoutKey(Project, 'project_id'),
  platform_id: () => refersWithoutKey(Platform, 'platform_id'),
  is_master: p.boolean().default(false),
  is_active: p.boolean().default(true),
});

/** The check constraint for these columns; `masterColumn` refers from a copy to its template. */
export const tenantOrTemplateCheck = (table: string, masterColumn: string) => ({
  name: `${table}_master_or_tenant_check`,
  expression: `is_master = (project_id is null) and is_master = (platform_id is null) and not (is_master and ${masterColumn} is not null)`,
});
