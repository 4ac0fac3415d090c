import { z } from 'zod';
import {
  KeyChoice,
  KeyCreate,
  KeyList,
  KeyPage,
  KeyRotate,
  KeyRotateSelf,
  NewApiKey,
  OwnKey,
} from '../../../shared/key.ts';
import { pausedWebhooks } from '../../../shared/webhook.ts';
import { createKey, listKeys, revokeKey, rotateKey } from '../../domain/account/key.ts';
import { describeOwnKey, rotateOwnKey } from '../../domain/account/ownKey.ts';
import { rest } from '../restOperation.ts';
import { keyProcedure, router, signedInProcedure } from '../trpc.ts';

/** Reasons of calls that name another user's key. */
const OF_KEY_HOLDER = ['other_user', 'not_a_superadmin'] as const;

/** The scopes that keys can have come from all other routers. */
export const keyRouterFor = (scopes: string[]) =>
  router({
    create: rest(signedInProcedure, '/services/platforms/v1/keys/create', {
      status: 201,
      message: 'Key created.',
      summary: 'Create an API key',
      description:
        'Creates a key that acts as the caller or, for superadmins, as a service. Its secret is shown only this once. The scope `grants:write` is for owners and superadmins.',
    })
      .meta({
        idempotency: 'secret',
        proof: 'inInput',
        events: ['key.created'],
        reasons: [...OF_KEY_HOLDER, 'unknown_reference', 'place_full'],
      })
      .input(KeyCreate(scopes))
      .output(NewApiKey)
      .mutation(({ ctx, input }) => createKey(ctx, input)),

    list: rest(signedInProcedure, '/services/platforms/v1/keys/list', {
      message: 'API keys.',
      summary: 'List API keys',
      description:
        'The keys of the caller or, for superadmins, of a service, revoked and expired ones too, page by page.',
    })
      .meta({ reasons: OF_KEY_HOLDER })
      .input(KeyList)
      .output(KeyPage)
      .query(({ ctx, input }) => listKeys(ctx, input)),

    self: rest(keyProcedure, '/services/platforms/v1/keys/self', {
      message: 'The key of this call.',
      summary: 'Who am I, with an API key',
      description:
        'The key that the call was made with, without its secret, the user that it acts as, and until when the sent secret is valid. Needs no scope.',
    })
      .meta({ onPrimary: true, reasons: ['key_ended'] })
      .output(OwnKey)
      .query(({ ctx }) => describeOwnKey(ctx)),

    rotateSelf: rest(keyProcedure, '/services/platforms/v1/keys/rotate-self', {
      message: 'Key rotated.',
      summary: 'Rotate the API key of the call',
      description:
        'Returns a new secret of the same key once. The secret of the call stays valid for the chosen time, an older one does not. The user, the project and the expiry stay the same, and the scopes can only become fewer. Needs no scope, but the current secret: the previous one gets a 400.',
    })
      .meta({
        isDestructive: true,
        idempotency: 'secret',
        events: ['key.rotated', 'webhook.disabled'],
        reasons: ['key_ended', 'secret_replaced'],
      })
      .input(KeyRotateSelf(scopes))
      .output(NewApiKey)
      .mutation(({ ctx, input }) => rotateOwnKey(ctx, input)),

    rotate: rest(signedInProcedure, '/services/platforms/v1/keys/rotate', {
      message: 'Key rotated.',
      summary: 'Rotate an API key',
      description:
        'Returns a new secret once. The previous one stays valid for the chosen time, an older one does not.',
    })
      .meta({
        isDestructive: true,
        idempotency: 'secret',
        proof: 'inInput',
        events: ['key.rotated'],
        reasons: [...OF_KEY_HOLDER, 'key_ended'],
      })
      .input(KeyRotate)
      .output(NewApiKey)
      .mutation(({ ctx, input }) => rotateKey(ctx, input)),

    revoke: rest(signedInProcedure, '/services/platforms/v1/keys/revoke', {
      message: 'Key revoked.',
      summary: 'Revoke an API key',
      description: 'Makes a key invalid from the next request on. Webhooks that were created with it are switched off.',
    })
      .meta({ isDestructive: true, events: ['key.revoked', 'webhook.disabled'], reasons: OF_KEY_HOLDER })
      .input(KeyChoice)
      .output(z.object({ paused_webhooks: pausedWebhooks }))
      .mutation(({ ctx, input }) => revokeKey(ctx, input)),
  });
