import { z } from 'zod';
import {
  DeprecatedVersion,
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
} from '../../shared/theme.ts';
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
} from '../domain/theme.ts';
import { rest } from '../restOperation.ts';
import { ownerOrSuperadminProcedure, router, superadminProcedure } from '../trpc.ts';

const oneVersion = z.object({ version: ThemeVersion });

export const themeRouter = router({
  deprecateVersion: ownerOrSuperadminProcedure
    .meta(
      rest('/services/websites/v1/themes/versions/deprecate', {
        message: 'Theme version deprecated.',
        summary: 'Deprecate a theme version',
        description: 'Deprecates an approved theme version. Does nothing if it is already deprecated.',
      }),
    )
    .input(VersionChoice)
    .output(DeprecatedVersion)
    .mutation(({ ctx, input }) => deprecateVersion(ctx, input)),

  deprecateWithNotice: ownerOrSuperadminProcedure
    .meta({ command: 'Deprecate a version with a reason and a replacement.' })
    .input(VersionDeprecate)
    .output(oneVersion)
    .mutation(({ ctx, input }) => deprecateWithNotice(ctx, input)),

  undoDeprecation: ownerOrSuperadminProcedure
    .meta({ command: 'Undo the deprecation of a version.' })
    .input(VersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => undoDeprecation(ctx, input)),

  create: superadminProcedure
    .meta({ command: 'Create a theme of a platform.' })
    .input(ThemeCreate)
    .output(z.object({ theme: Theme }))
    .mutation(({ ctx, input }) => createTheme(ctx, input)),

  list: ownerOrSuperadminProcedure
    .meta({ command: 'List themes.' })
    .input(ThemeList)
    .output(ThemePage)
    .query(({ ctx, input }) => listThemes(ctx, input)),

  listVersions: ownerOrSuperadminProcedure
    .meta({ command: 'List the versions of themes.' })
    .input(VersionList)
    .output(VersionPage)
    .query(({ ctx, input }) => listVersions(ctx, input)),

  submitVersion: ownerOrSuperadminProcedure
    .meta({ command: 'Submit a version of a theme for review.' })
    .input(VersionSubmit)
    .output(oneVersion)
    .mutation(({ ctx, input }) => submitVersion(ctx, input)),

  approveVersion: superadminProcedure
    .meta({ command: 'Approve a pending version.' })
    .input(VersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => approveVersion(ctx, input)),

  rejectVersion: superadminProcedure
    .meta({ command: 'Reject a pending version.' })
    .input(VersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => rejectVersion(ctx, input)),

  publishVersion: ownerOrSuperadminProcedure
    .meta({ command: 'Publish an approved version.' })
    .input(VersionChoice)
    .output(oneVersion)
    .mutation(({ ctx, input }) => publishVersion(ctx, input)),
});
