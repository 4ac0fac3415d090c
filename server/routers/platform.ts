import { z } from 'zod';
import { Platform, PlatformCreate, PlatformList, PlatformPage, PlatformUpdate } from '../../shared/platform.ts';
import { createPlatform, listPlatforms, updatePlatform } from '../domain/platform.ts';
import { router, superadminProcedure } from '../trpc.ts';

const onePlatform = z.object({ platform: Platform });

export const platformRouter = router({
  create: superadminProcedure
    .meta({ command: 'Create a platform: a customer.' })
    .input(PlatformCreate)
    .output(onePlatform)
    .mutation(({ ctx, input }) => createPlatform(ctx, input)),

  update: superadminProcedure
    .meta({ command: 'Rename a platform.' })
    .input(PlatformUpdate)
    .output(onePlatform)
    .mutation(({ ctx, input }) => updatePlatform(ctx, input)),

  list: superadminProcedure
    .meta({ command: 'List platforms.' })
    .input(PlatformList)
    .output(PlatformPage)
    .query(({ ctx, input }) => listPlatforms(ctx, input)),
});
