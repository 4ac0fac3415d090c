import { z } from 'zod';
import {
  Release,
  ReleaseCompare,
  ReleaseGet,
  ReleaseList,
  ReleasePage,
  ReleasePublish,
  ReleaseRow,
  RowDifference,
} from '../../../shared/release.ts';
import {
  compareReleases,
  getRelease,
  listReleases,
  publishRelease,
  RELEASE_LEVEL,
} from '../../domain/template/release.ts';
import { rest } from '../restOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

const release = Release.meta({ description: 'The release.' });
const rows = z.array(ReleaseRow).meta({ description: 'Its rows: the board, its groups, its cards.' });

export const releaseRouter = router({
  publish: rest(superadminProcedure, '/services/operations/v1/admin/releases/publish', {
    status: 201,
    message: 'Release published.',
    summary: 'Publish a release',
    description:
      'Publishes a master board as it is now, with its groups and cards. No project changes: a rollout brings a release to projects. If nothing has changed since the last release, that one is returned.',
  })
    .meta({ events: ['release.published'], level: RELEASE_LEVEL })
    .input(ReleasePublish)
    .output(z.object({ release, is_new: z.boolean().meta({ description: 'Whether something had changed.' }) }))
    .mutation(({ ctx, input }) => publishRelease(ctx, input)),

  list: rest(superadminProcedure, '/services/operations/v1/admin/releases/list', {
    message: 'Releases.',
    summary: 'List releases',
    description: 'The releases of a master board, or of all, newest first.',
    namesRow: false,
  })
    .input(ReleaseList)
    .output(ReleasePage)
    .query(({ ctx, input }) => listReleases(ctx, input)),

  get: rest(superadminProcedure, '/services/operations/v1/admin/releases/get', {
    message: 'The release.',
    summary: 'Get a release',
    description: 'A release with its rows.',
  })
    .meta({ reasons: ['answer_too_large'] })
    .input(ReleaseGet)
    .output(z.object({ release, rows }))
    .query(({ ctx, input }) => getRelease(ctx, input)),

  compare: rest(superadminProcedure, '/services/operations/v1/admin/releases/compare', {
    message: 'What differs.',
    summary: 'Compare releases',
    description: 'What differs between a release and a later one of the same board, or the board as it is now.',
  })
    .meta({ reasons: ['answer_too_large', 'unknown_reference'] })
    .input(ReleaseCompare)
    .output(z.object({ differences: z.array(RowDifference).meta({ description: 'The rows that differ.' }) }))
    .query(({ ctx, input }) => compareReleases(ctx, input)),
});
