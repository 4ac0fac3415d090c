import { z } from 'zod';
import { KeyChoice, KeyCreate, KeyList, KeyPage, KeyRotate, NewApiKey } from '../../../shared/key.ts';
import { createKey, listKeys, revokeKey, rotateKey } from '../../domain/account/key.ts';
import { rest } from '../restOperation.ts';
import { router, signedInProcedure } from '../trpc.ts';

/** The scopes that keys can have come from all other routers. */
export const keyRouterFor = (scopes: string[]) =>
  router({
    create: signedInProcedure
      .meta(
        rest('/services/platforms/v1/keys/create', {
          status: 201,
          message: 'Key created.',
          summary: 'Create an API key',
          description:
            'Creates a key that acts as the caller or, for superadmins, as a service. Its secret is shown only this once. Asks for the password, and for a code if a second factor is enabled, unless they were given within the last ten minutes.',
        }),
      )
      .meta({ idempotency: 'secret' })
      .input(KeyCreate(scopes))
      .output(NewApiKey)
      .mutation(({ ctx, input }) => createKey(ctx, input)),

    list: signedInProcedure
      .meta(
        rest('/services/platforms/v1/keys/list', {
          message: 'API keys.',
          summary: 'List API keys',
          description:
            'The keys of the caller or, for superadmins, of a service, revoked and expired ones too, page by page.',
        }),
      )
      .input(KeyList)
      .output(KeyPage)
      .query(({ ctx, input }) => listKeys(ctx, input)),

    rotate: signedInProcedure
      .meta(
        rest('/services/platforms/v1/keys/rotate', {
          message: 'Key rotated.',
          summary: 'Rotate an API key',
          description:
            'Returns a new secret once. The previous one stays valid for the chosen time, an older one does not. Asks for the same proof as `keys/create`.',
        }),
      )
      .meta({ idempotency: 'secret' })
      .input(KeyRotate)
      .output(NewApiKey)
      .mutation(({ ctx, input }) => rotateKey(ctx, input)),

    revoke: signedInProcedure
      .meta(
        rest('/services/platforms/v1/keys/revoke', {
          message: 'Key revoked.',
          summary: 'Revoke an API key',
          description: 'Makes a key invalid from the next request on.',
        }),
      )
      .input(KeyChoice)
      .output(z.void())
      .mutation(({ ctx, input }) => revokeKey(ctx, input)),
  });
