import { z } from 'zod';
import { COUNTS_AS } from '../../../shared/limits.ts';
import {
  DeliveryList,
  DeliveryPage,
  NewWebhook,
  Webhook,
  WebhookChoice,
  WebhookCreate,
  WebhookList,
  WebhookPage,
  WebhookRedeliver,
  WebhookResend,
  WebhookSkip,
  WebhookUpdate,
} from '../../../shared/webhook.ts';
import {
  createWebhook,
  deleteWebhook,
  listDeliveries,
  listWebhooks,
  rotateSecret,
  sendTest,
  updateWebhook,
} from '../../domain/event/webhook.ts';
import { redeliver, resend, skip } from '../../domain/event/webhookResend.ts';
import { rest } from '../restOperation.ts';
import { ownerOrSuperadminProcedure, router } from '../trpc.ts';

export const webhookRouter = router({
  create: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/create', {
    status: 201,
    message: 'Webhook created.',
    summary: 'Create a webhook',
    description:
      'Sends the events of a project to an address from now on, signed as Standard Webhooks describes it. The secret is shown only this once. A project has at most 20 webhooks.',
  })
    .meta({
      idempotency: 'secret',
      events: ['webhook.created'],
      proof: 'always',
      reasons: ['place_full', 'upgrade_unfinished'],
    })
    .input(WebhookCreate)
    .output(NewWebhook)
    .mutation(({ ctx, input }) => createWebhook(ctx, input)),

  list: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/list', {
    message: 'Webhooks of the project.',
    summary: 'List webhooks',
    description: 'The webhooks of a project, page by page.',
  })
    .input(WebhookList)
    .output(WebhookPage)
    .query(({ ctx, input }) => listWebhooks(ctx, input)),

  update: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/update', {
    message: 'Webhook updated.',
    summary: 'Update a webhook',
    description:
      'Changes a webhook. With another address, or active again, it is tried at once, goes on where it stopped, and belongs to the caller (`created_by`).',
  })
    .meta({
      proof: {
        for: 'an address, further types, and to activate it',
        isNeeded: ({ url, is_active }: WebhookUpdate) => url != null || is_active === true,
      },
      events: ['webhook.updated'],
    })
    .meta({ reasons: ['upgrade_unfinished'] })
    .input(WebhookUpdate)
    .output(z.object({ webhook: Webhook }))
    .mutation(({ ctx, input }) => updateWebhook(ctx, input)),

  delete: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/delete', {
    message: 'Webhook deleted.',
    summary: 'Delete a webhook',
    description: 'Deletes a webhook, with the list of its deliveries.',
  })
    .meta({ isDestructive: true, events: ['webhook.deleted'] })
    .input(WebhookChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteWebhook(ctx, input)),

  rotateSecret: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/rotate-secret', {
    message: 'Secret rotated.',
    summary: 'Rotate the secret of a webhook',
    description:
      'Returns a new secret once. For 24 hours, each message has a signature with the previous one, too; one that is older no longer signs.',
  })
    .meta({ isDestructive: true, idempotency: 'secret', events: ['webhook.rotated'], proof: 'always' })
    .input(WebhookChoice)
    .output(NewWebhook)
    .mutation(({ ctx, input }) => rotateSecret(ctx, input)),

  deliveries: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/deliveries', {
    message: 'Deliveries of the webhook.',
    summary: 'List deliveries',
    description:
      'The attempts to deliver events to a webhook, newest first, page by page. They are kept for 7 days, at most 1,000 of each webhook.',
  })
    .input(DeliveryList)
    .output(DeliveryPage)
    .query(({ ctx, input }) => listDeliveries(ctx, input)),

  redeliver: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/redeliver', {
    message: 'Events are sent again.',
    summary: 'Send events again',
    description: `Moves a webhook back to an event: this one and all later ones are sent again, in their order and with the same ids. It is tried at once, if it is active. At most 10,000 events are sent again. The call ${COUNTS_AS}. Until they can have been sent, 10 of them a second, the next call gets a 429 (\`too_many_resends\`); so does one if too many wait in the project or for the host.`,
  })
    .meta({ events: ['webhook.redelivered'], reasons: ['unknown_reference', 'webhook_not_active', 'too_many_resends'] })
    .input(WebhookRedeliver)
    .output(z.object({ webhook: Webhook }))
    .mutation(({ ctx, input }) => redeliver(ctx, input)),

  resend: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/resend', {
    message: 'The event is sent again.',
    summary: 'Send one event again',
    description:
      'Sends one event again, with the same id, while the other events go on. It is tried once; `deliveries` then shows what came of it.',
  })
    .meta({
      events: ['webhook.redelivered'],
      level: 1,
      reasons: ['unknown_reference', 'webhook_not_active', 'place_full'],
    })
    .input(WebhookResend)
    .output(z.void())
    .mutation(({ ctx, input }) => resend(ctx, input)),

  skip: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/skip', {
    message: 'Event skipped.',
    summary: 'Skip the next event',
    description:
      'Moves a webhook behind the event that it sends next, which its receiver does not take. The later events follow at once.',
  })
    .meta({ isDestructive: true, events: ['webhook.skipped'], level: 1, reasons: ['event_not_next'] })
    .input(WebhookSkip)
    .output(z.object({ webhook: Webhook }))
    .mutation(({ ctx, input }) => skip(ctx, input)),

  sendTest: rest(ownerOrSuperadminProcedure, '/services/platforms/v1/webhooks/send-test', {
    message: 'A test is sent.',
    summary: 'Send a test event',
    description:
      'Sends an event of the type `webhook.test` to this webhook alone, within about a second, also if it is not active. `deliveries` then shows what came of it.',
  })
    .meta({ events: ['webhook.tested'] })
    .input(WebhookChoice)
    .output(z.void())
    .mutation(({ ctx, input }) => sendTest(ctx, input)),
});
