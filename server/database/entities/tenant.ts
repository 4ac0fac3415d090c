import { p } from '@mikro-orm/core';
import { identity, refersWithinTenant } from './columns.ts';
import { Platform, Project } from './platform.ts';

/** The first columns of boards, groups and cards: a row belongs to a project, or is a template (`is_master`) of none. */
export const tenantOrTemplate = () => ({
  id: identity(),
  project_id: () => refersWithinTenant(Project, 'project_id').nullable(),
  platform_id: () => refersWithinTenant(Platform, 'platform_id').nullable(),
  is_master: p.boolean().default(false),
  is_active: p.boolean().default(true),
});

/** The check constraint for these columns; `masterColumn` refers from a copy to its template. */
export const tenantOrTemplateCheck = (table: string, masterColumn: string) => ({
  name: `${table}_master_or_tenant_check`,
  expression: `is_master = (project_id is null) and is_master = (platform_id is null) and not (is_master and ${masterColumn} is not null)`,
});

/**
 * The check constraint of a column that a trigger fills: the parent of a template, null in other rows. Foreign keys skip rows
 * with a null, so the key with the project can't check templates, and this one costs nothing in the copies of a sync.
 */
export const templateParentCheck = (table: string, column: string, parentColumn: string) => ({
  name: `${table}_${column}_check`,
  expression: `is_master = (${column} is not null) and (${column} is null or ${column} = ${parentColumn})`,
});
