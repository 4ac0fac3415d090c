import { z } from 'zod';
import { Platform, PlatformCreate, PlatformList, PlatformPage, PlatformUpdate } from '../../../shared/platform.ts';
import { createPlatform, listPlatforms, updatePlatform } from '../../domain/account/platform.ts';
import { rest } from '../restOperation.ts';
import { router, superadminProcedure } from '../trpc.ts';

const onePlatform = z.object({ platform: Platform });

export const platformRouter = router({
  create: rest(superadminProcedure, '/services/platforms/v1/platforms/create', {
    status: 201,
    message: 'Platform created.',
    summary: 'Create a platform',
    description: 'Creates a platform: a customer.',
  })
    .meta({ events: ['platform.created'] })
    .input(PlatformCreate)
    .output(onePlatform)
    .mutation(({ ctx, input }) => createPlatform(ctx, input)),

  update: rest(superadminProcedure, '/services/platforms/v1/platforms/update', {
    message: 'Platform updated.',
    summary: 'Rename a platform',
    description: 'Changes the name of a platform.',
  })
    .meta({ events: ['platform.updated'] })
    .input(PlatformUpdate)
    .output(onePlatform)
    .mutation(({ ctx, input }) => updatePlatform(ctx, input)),

  list: rest(superadminProcedure, '/services/platforms/v1/platforms/list', {
    message: 'Platforms.',
    summary: 'List platforms',
    description: 'All platforms, page by page.',
  })
    .input(PlatformList)
    .output(PlatformPage)
    .query(({ ctx, input }) => listPlatforms(ctx, input)),
});
