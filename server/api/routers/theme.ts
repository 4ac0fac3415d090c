import { z } from 'zod';
import {
  ApprovedVersionChoice,
  DeprecatedVersion,
  PendingVersionChoice,
  Theme,
  ThemeCreate,
  ThemeList,
  ThemePage,
  ThemeVersion,
  VersionChoice,
  VersionDeprecate,
  VersionList,
  VersionPage,
  VersionSubmit,
} from '../../../shared/theme.ts';
import {
  approveVersion,
  createTheme,
  deprecateVersion,
  deprecateWithNotice,
  listThemes,
  listVersions,
  publishVersion,
  rejectVersion,
  submitVersion,
  undoDeprecation,
} from '../../domain/theme/theme.ts';
import { rest, specified } from '../restOperation.ts';
import { ownerOrSuperadminProcedure, router, superadminProcedure } from '../trpc.ts';

const oneVersion = z.object({ version: ThemeVersion });

export const themeRouter = router({
  deprecateVersion: specified(ownerOrSuperadminProcedure, '/services/websites/v1/themes/versions/deprecate', {
    message: 'Theme version deprecated.',
    summary: 'Deprecate a theme version',
    description: 'Deprecates an approved theme version. Does nothing if it is already deprecated.',
  })
    .meta({
      isDestructive: true,
      events: ['theme_version.deprecated'],
      reasons: ['other_platform', 'version_not_approved'],
    })
    .input(ApprovedVersionChoice)
    .output(DeprecatedVersion)
    .mutation(({ ctx, input }) => deprecateVersion(ctx, input)),

  deprecateWithNotice: rest(ownerOrSuperadminProcedure, '/services/websites/v1/themes/versions/deprecate-with-notice', {
    message: 'Theme version deprecated.',
    summary: 'Deprecate a theme version with a notice',
    description: 'Deprecates an approved version, with a reason and a replacement.',
  })
    .meta({
      isDestructive: true,
      events: ['theme_version.deprecated'],
      reasons: ['other_platform', 'version_not_approved', 'unknown_reference'],
    })
    .input(VersionDeprecate)
    .output(oneVersion)
    .mutation(({ ctx, input }) => deprecateWithNotice(ctx, input)),

  undoDeprecation: rest(ownerOrSuperadminProcedure, '/services/websites/v1/themes/versions/undo-deprecation', {
    message: 'Deprecation undone.',
    summary: 'Undo a deprecation',
    description: 'Restores the status that a version had before it was deprecated.',
  })
    .meta({ events: ['theme_version.restored'], reasons: ['other_platform', 'version_not_approved'] })
    .input(VersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => undoDeprecation(ctx, input)),

  create: rest(superadminProcedure, '/services/websites/v1/themes/create', {
    status: 201,
    message: 'Theme created.',
    summary: 'Create a theme',
    description: 'Creates a theme of a platform.',
    namesRow: false,
  })
    .meta({ events: ['theme.created'], reasons: ['other_platform', 'unknown_reference'] })
    .input(ThemeCreate)
    .output(z.object({ theme: Theme }))
    .mutation(({ ctx, input }) => createTheme(ctx, input)),

  list: rest(ownerOrSuperadminProcedure, '/services/websites/v1/themes/list', {
    message: 'Themes.',
    summary: 'List themes',
    description: 'The themes of the platforms of the caller, or all, page by page.',
  })
    .meta({ onPrimary: true })
    .input(ThemeList)
    .output(ThemePage)
    .query(({ ctx, input }) => listThemes(ctx, input)),

  listVersions: rest(ownerOrSuperadminProcedure, '/services/websites/v1/themes/versions/list', {
    message: 'Theme versions.',
    summary: 'List theme versions',
    description: 'The versions of themes of the platforms of the caller, or all, page by page.',
    namesRow: false,
  })
    .meta({ onPrimary: true })
    .input(VersionList)
    .output(VersionPage)
    .query(({ ctx, input }) => listVersions(ctx, input)),

  submitVersion: rest(ownerOrSuperadminProcedure, '/services/websites/v1/themes/versions/submit', {
    status: 201,
    message: 'Theme version submitted.',
    summary: 'Submit a theme version',
    description: 'Submits a version of a theme for review; a rejected one may be submitted again.',
  })
    .meta({ events: ['theme_version.submitted'], reasons: ['other_platform', 'already_exists'] })
    .input(VersionSubmit)
    .output(oneVersion)
    .mutation(({ ctx, input }) => submitVersion(ctx, input)),

  approveVersion: rest(superadminProcedure, '/services/websites/v1/themes/versions/approve', {
    message: 'Theme version approved.',
    summary: 'Approve a theme version',
    description: 'Approves a pending version.',
  })
    .meta({ events: ['theme_version.approved'], reasons: ['other_platform', 'version_not_pending'] })
    .input(PendingVersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => approveVersion(ctx, input)),

  rejectVersion: rest(superadminProcedure, '/services/websites/v1/themes/versions/reject', {
    message: 'Theme version rejected.',
    summary: 'Reject a theme version',
    description: 'Rejects a pending version.',
  })
    .meta({ events: ['theme_version.rejected'], reasons: ['other_platform', 'version_not_pending'] })
    .input(PendingVersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => rejectVersion(ctx, input)),

  publishVersion: rest(ownerOrSuperadminProcedure, '/services/websites/v1/themes/versions/publish', {
    message: 'Theme version published.',
    summary: 'Publish a theme version',
    description: 'Publishes an approved version.',
  })
    .meta({
      events: ['theme_version.published'],
      reasons: ['other_platform', 'version_not_approved', 'version_deprecated'],
    })
    .input(VersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => publishVersion(ctx, input)),
});
