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
  deprecateVersion: ownerOrSuperadminProcedure
    .meta(
      specified('/services/websites/v1/themes/versions/deprecate', {
        message: 'Theme version deprecated.',
        summary: 'Deprecate a theme version',
        description: 'Deprecates an approved theme version. Does nothing if it is already deprecated.',
      }),
    )
    .meta({ events: ['theme_version.deprecated'] })
    .input(ApprovedVersionChoice)
    .output(DeprecatedVersion)
    .mutation(({ ctx, input }) => deprecateVersion(ctx, input)),

  deprecateWithNotice: ownerOrSuperadminProcedure
    .meta(
      rest('/services/websites/v1/themes/versions/deprecate-with-notice', {
        message: 'Theme version deprecated.',
        summary: 'Deprecate a theme version with a notice',
        description: 'Deprecates an approved version, with a reason and a replacement.',
      }),
    )
    .meta({ events: ['theme_version.deprecated'] })
    .input(VersionDeprecate)
    .output(oneVersion)
    .mutation(({ ctx, input }) => deprecateWithNotice(ctx, input)),

  undoDeprecation: ownerOrSuperadminProcedure
    .meta(
      rest('/services/websites/v1/themes/versions/undo-deprecation', {
        message: 'Deprecation undone.',
        summary: 'Undo a deprecation',
        description: 'Restores the status that a version had before it was deprecated.',
      }),
    )
    .meta({ events: ['theme_version.restored'] })
    .input(VersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => undoDeprecation(ctx, input)),

  create: superadminProcedure
    .meta(
      rest('/services/websites/v1/themes/create', {
        status: 201,
        message: 'Theme created.',
        summary: 'Create a theme',
        description: 'Creates a theme of a platform.',
        namesRow: false,
      }),
    )
    .meta({ events: ['theme.created'] })
    .input(ThemeCreate)
    .output(z.object({ theme: Theme }))
    .mutation(({ ctx, input }) => createTheme(ctx, input)),

  list: ownerOrSuperadminProcedure
    .meta(
      rest('/services/websites/v1/themes/list', {
        message: 'Themes.',
        summary: 'List themes',
        description: 'The themes of the platforms of the caller, or all, page by page.',
        namesRow: false,
      }),
    )
    .meta({ onPrimary: true })
    .input(ThemeList)
    .output(ThemePage)
    .query(({ ctx, input }) => listThemes(ctx, input)),

  listVersions: ownerOrSuperadminProcedure
    .meta(
      rest('/services/websites/v1/themes/versions/list', {
        message: 'Theme versions.',
        summary: 'List theme versions',
        description: 'The versions of themes of the platforms of the caller, or all, page by page.',
        namesRow: false,
      }),
    )
    .meta({ onPrimary: true })
    .input(VersionList)
    .output(VersionPage)
    .query(({ ctx, input }) => listVersions(ctx, input)),

  submitVersion: ownerOrSuperadminProcedure
    .meta(
      rest('/services/websites/v1/themes/versions/submit', {
        status: 201,
        message: 'Theme version submitted.',
        summary: 'Submit a theme version',
        description: 'Submits a version of a theme for review; a rejected one may be submitted again.',
      }),
    )
    .meta({ events: ['theme_version.submitted'] })
    .input(VersionSubmit)
    .output(oneVersion)
    .mutation(({ ctx, input }) => submitVersion(ctx, input)),

  approveVersion: superadminProcedure
    .meta(
      rest('/services/websites/v1/themes/versions/approve', {
        message: 'Theme version approved.',
        summary: 'Approve a theme version',
        description: 'Approves a pending version.',
      }),
    )
    .meta({ events: ['theme_version.approved'] })
    .input(PendingVersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => approveVersion(ctx, input)),

  rejectVersion: superadminProcedure
    .meta(
      rest('/services/websites/v1/themes/versions/reject', {
        message: 'Theme version rejected.',
        summary: 'Reject a theme version',
        description: 'Rejects a pending version.',
      }),
    )
    .meta({ events: ['theme_version.rejected'] })
    .input(PendingVersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => rejectVersion(ctx, input)),

  publishVersion: ownerOrSuperadminProcedure
    .meta(
      rest('/services/websites/v1/themes/versions/publish', {
        message: 'Theme version published.',
        summary: 'Publish a theme version',
        description: 'Publishes an approved version.',
      }),
    )
    .meta({ events: ['theme_version.published'] })
    .input(VersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => publishVersion(ctx, input)),
});
