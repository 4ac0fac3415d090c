import { z } from 'zod';
import { fieldsOfUpdate } from './changes.ts';
import { id, optionalChoice, optionalText, sentAsText, storedChoice, text, timestamp } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

export const APPROVAL_STATUSES = ['pending', 'approved', 'rejected'] as const;
export const THEME_STATUSES = ['draft', 'published', 'deprecated'] as const;

const themeStatus = storedChoice(THEME_STATUSES).meta({
  description: 'Its publication status.',
  example: 'deprecated',
});
const version_id = id.meta({ description: 'The theme version.' });

export const Theme = z
  .object({
    id,
    platform_id: id.meta({ description: 'The platform that owns it.' }),
    name: z.string().meta({ description: 'Its name.' }),
    created_at: timestamp.meta({ description: 'When it was created.' }),
    updated_at: timestamp.meta({ description: 'When it was last changed.' }),
  })
  .meta({ id: 'Theme', description: 'A theme of a platform.' });

export const ThemeCreate = z.object({
  platform_id: id.meta({ description: 'The platform that owns it.' }),
  name: text(255).meta({ description: 'Its name.' }),
});
ThemeCreate.register(requestExamples, { example: { platform_id: 1, name: 'Lighthouse' } });
export type ThemeCreate = z.output<typeof ThemeCreate>;

export const ThemeList = Page;
export const ThemePage = pageOf('themes', Theme);

export const ThemeVersion = z
  .object({
    id,
    theme_id: id.meta({ description: 'The theme that it is a version of.' }),
    version: z.string().meta({ description: 'The version number or name.', example: '1.2.0' }),
    approval_status: storedChoice(APPROVAL_STATUSES).meta({ description: 'The review status.' }),
    theme_status: themeStatus,
    published_at: timestamp.nullable().meta({ description: 'When it was first published.' }),
    deprecated_at: timestamp.nullable().meta({ description: 'When it was deprecated.' }),
    deprecation_reason: z.string().nullable().meta({ description: 'Why it was deprecated.' }),
    replacement_version_id: id.nullable().meta({ description: 'The version to use instead.' }),
    created_at: timestamp.meta({ description: 'When it was submitted.' }),
    updated_at: timestamp.meta({ description: 'When it was last changed.' }),
  })
  .meta({ id: 'ThemeVersion', description: 'A version of a theme.' });

export const VersionSubmit = z.object({
  theme_id: id.meta({ description: 'The theme.' }),
  version: text(100).meta({ description: 'The version number or name.', example: '1.2.0' }),
});
VersionSubmit.register(requestExamples, { example: { theme_id: 1, version: '1.3.0' } });
export type VersionSubmit = z.output<typeof VersionSubmit>;

export const VersionChoice = z.object({ version_id });
export type VersionChoice = z.output<typeof VersionChoice>;
export const PendingVersionChoice = VersionChoice.clone().register(requestExamples, { example: { version_id: 2 } });

/** The specification's own description comes first. */
export const ApprovedVersionChoice = z.object({
  version_id: id.meta({
    description:
      'The theme version project id; must be approved. It is the `id` of a theme version, as `themes/versions/list` answers it.',
  }),
});

export const DeprecatedVersion = z.object({
  version_id: sentAsText(version_id, 'The id of the theme version, as text.'),
  theme_status: themeStatus,
});

const notice = {
  reason: optionalText(1000).meta({ description: 'Why it should no longer be used.' }),
  replacement_version_id: id.nullish().meta({ description: 'A published version of the same theme to use instead.' }),
};
/** Also replaces the notice of a deprecated version. */
export const VersionDeprecate = ApprovedVersionChoice.extend(
  fieldsOfUpdate(notice, z.object({ ...ThemeVersion.shape, reason: ThemeVersion.shape.deprecation_reason })),
);
VersionDeprecate.register(requestExamples, { example: { version_id: 1, reason: 'Its menu does not work on phones.' } });
export type VersionDeprecate = z.output<typeof VersionDeprecate>;

export const VersionList = Page.extend({
  theme_id: id.nullish().meta({ description: 'Only versions of this theme.' }),
  approval_status: optionalChoice(APPROVAL_STATUSES).meta({ description: 'Only versions with this review status.' }),
});
VersionList.register(requestExamples, { example: { theme_id: 1, limit: 20 } });
export type VersionList = z.output<typeof VersionList>;
export const VersionPage = pageOf('versions', ThemeVersion);
