import { defineEntity, p } from '@mikro-orm/core';
import { APPROVAL_STATUSES, THEME_STATUSES } from '../../../shared/theme.ts';
import { created, identity, refersTo, type SelfReference, timestamp } from './columns.ts';
import { Platform } from './platform.ts';

export const Theme = defineEntity({
  name: 'Theme',
  tableName: 'themes',
  properties: {
    id: identity(),
    platform_id: () => refersTo(Platform, 'platform_id'),
    name: p.text(),
    ...created(),
  },
  indexes: [{ properties: ['platform_id'] }],
});

export const ThemeVersion = defineEntity({
  name: 'ThemeVersion',
  tableName: 'theme_versions',
  properties: {
    id: identity(),
    theme_id: () => refersTo(Theme, 'theme_id'),
    version: p.text(),
    approval_status: p.enum([...APPROVAL_STATUSES]).default('pending'),
    theme_status: p.enum([...THEME_STATUSES]).default('draft'),
    /** When it was first published; undoing a deprecation restores `published` if it is set, else `draft`. */
    published_at: timestamp().nullable(),
    deprecated_at: timestamp().nullable(),
    deprecation_reason: p.text().nullable(),
    replacement_version_id: (): SelfReference<'replacement_version_id'> =>
      refersTo(ThemeVersion, 'replacement_version_id').nullable(),
    ...created(),
  },
  checks: [
    { name: 'theme_versions_approved_check', expression: `theme_status = 'draft' or approval_status = 'approved'` },
    {
      name: 'theme_versions_deprecated_check',
      expression: `(theme_status = 'deprecated') = (deprecated_at is not null)`,
    },
    { name: 'theme_versions_published_check', expression: `theme_status <> 'published' or published_at is not null` },
    { name: 'theme_versions_replacement_check', expression: 'replacement_version_id is distinct from id' },
  ],
  indexes: [{ properties: ['replacement_version_id'], where: 'replacement_version_id is not null' }],
  uniques: [{ properties: ['theme_id', 'version'] }],
});
