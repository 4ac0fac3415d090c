import { z } from 'zod';
import { KEPT_BY_NULL } from './changes.ts';
import { EVENT_TYPES, eventType, storedEventType } from './event.ts';
import { count, flag, id, storedChoice, text, timestamp, untrimmed } from './fields.ts';
import { projectChoice } from './member.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

/** Why the service switched a webhook off: its receiver answered 410, or failed for days. */
export const DISABLED_REASONS = ['gone', 'failing'] as const;
/** It is not stored as such, since nodes of the previous version could not read it: see `right_lost_at`. */
export const RIGHT_LOST = 'right_lost';
/** How long a webhook goes on that had lost its right before the service began to check it. */
export const GRACE_DAYS = 30;
export const DELIVERY_STATUSES = ['delivered', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Of the message that `webhooks.sendTest` sends. */
export const TEST_TYPE = 'webhook.test';

const URL_EXAMPLE = 'https://example.com/deckhand';
const TYPES_EXAMPLE = ['card.created', 'card.moved'] as const;

export const Webhook = z
  .object({
    id,
    project_id: id.meta({ description: 'The project whose events it receives.' }),
    url: z.string().meta({ description: 'Where events are sent to.', example: URL_EXAMPLE }),
    types: z
      .array(storedEventType)
      .nullable()
      .meta({ description: 'The types of events that it receives; null for all.', example: [...TYPES_EXAMPLE] }),
    is_active: z.boolean().meta({ description: 'Whether events are sent.' }),
    disabled_reason: storedChoice([...DISABLED_REASONS, RIGHT_LOST])
      .nullable()
      .meta({
        description:
          'Set if the service switched it off: `gone` after a 410, `failing` after five days without a success, `right_lost` if `created_by` is no longer an active owner of the project or a superadmin, or the key `key_id` was revoked, has expired or lost the scope `events:read`.',
        example: null,
      }),
    right_lost_at: timestamp.nullable().meta({
      description: `When it was found that \`created_by\` or \`key_id\` lost the right to it. If it is still active, it is switched off ${GRACE_DAYS} days later, unless an owner sets \`is_active\`.`,
      example: null,
    }),
    failures: count.meta({ description: 'Failed attempts since the last success.', example: 0 }),
    first_failed_at: timestamp
      .nullable()
      .meta({ description: 'When the first of these failures was; null without one.', example: null }),
    next_attempt_at: timestamp
      .nullable()
      .meta({ description: 'When the failed event is sent again; null without a failure.', example: null }),
    previous_expires_at: timestamp
      .nullable()
      .meta({ description: 'Until when the secret before the last rotation signs, too.', example: null }),
    created_by: id.nullable().meta({
      description:
        'The user who created it, or who last changed its address or activated it; null for the command line.',
    }),
    key_id: id.nullable().meta({ description: 'The API key that they used; null without one.', example: null }),
    created_at: timestamp.meta({ description: 'When it was created.' }),
    updated_at: timestamp.meta({ description: 'When it was last changed.' }),
  })
  .meta({ id: 'Webhook', description: 'A receiver of events, without its secret.' });
export type Webhook = z.output<typeof Webhook>;

export const NewWebhook = z.object({
  webhook: Webhook,
  secret: z.string().meta({
    description: 'The secret that signs each message, shown only this once.',
    example: 'whsec_…',
  }),
});

const url = text(2000).meta({
  description: 'An https address that is reachable from the internet, without a user or password.',
  example: URL_EXAMPLE,
});
const types = z.array(eventType).min(1).max(Object.keys(EVENT_TYPES).length).nullish();

export const WebhookCreate = z.object({
  project_id: projectChoice,
  url,
  types: types.meta({
    description: 'The types of events that it receives; all if not sent.',
    example: [...TYPES_EXAMPLE],
  }),
});
WebhookCreate.register(requestExamples, { example: { url: URL_EXAMPLE, types: [...TYPES_EXAMPLE], project_id: 1 } });
export type WebhookCreate = z.output<typeof WebhookCreate>;

export const WebhookList = Page.extend({ project_id: projectChoice });
WebhookList.register(requestExamples, { example: { project_id: 1, limit: 20 } });
export type WebhookList = z.output<typeof WebhookList>;
export const WebhookPage = pageOf('webhooks', Webhook);

export const WebhookChoice = z.object({ id: id.meta({ description: 'The webhook.' }) });
export type WebhookChoice = z.output<typeof WebhookChoice>;

export const WebhookUpdate = WebhookChoice.extend({
  url: url.nullish().meta({ description: `Its new address. ${KEPT_BY_NULL}`, example: URL_EXAMPLE }),
  types: types.meta({
    description: 'The types of events that it receives, all if null. Not changed if not sent; null clears it.',
    example: [...TYPES_EXAMPLE],
  }),
  is_active: flag.meta({
    description: `Whether events are sent; once active again, it goes on where it stopped. ${KEPT_BY_NULL}`,
    example: true,
  }),
});
export type WebhookUpdate = z.output<typeof WebhookUpdate>;

const eventId = (description: string) =>
  untrimmed(18)
    .regex(/^[1-9]\d{0,17}$/, { error: 'must be the id of an event' })
    .meta({ description, example: '1042' });

export const WebhookRedeliver = WebhookChoice.extend({ event_id: eventId('The first event that is sent again.') });
export const WebhookResend = WebhookChoice.extend({ event_id: eventId('The event that is sent again.') });
export const WebhookSkip = WebhookChoice.extend({ event_id: eventId('The event to leave out: the next one.') });
export type WebhookEventChoice = z.output<typeof WebhookRedeliver>;

/** In the response of what takes the right to webhooks from somebody. */
export const PausedWebhook = Webhook.pick({ id: true, project_id: true })
  .extend({ host: z.string().meta({ description: 'The host of its address.', example: new URL(URL_EXAMPLE).host }) })
  .meta({ id: 'PausedWebhook', description: 'A webhook that was switched off.' });
export type PausedWebhook = z.output<typeof PausedWebhook>;
export const pausedWebhooks = z
  .array(PausedWebhook)
  .meta({ description: 'The webhooks that are switched off by it (`right_lost`): an owner can activate them again.' });

export const DeliveryList = Page.extend(WebhookChoice.shape);
DeliveryList.register(requestExamples, { example: { id: 1, limit: 20 } });
export type DeliveryList = z.output<typeof DeliveryList>;

export const WebhookDelivery = z
  .object({
    number: count.meta({ description: 'Its number, counted for each webhook.', example: 7 }),
    event_id: z.string().nullable().meta({ description: 'The event; null for a test.', example: '1042' }),
    type: z.string().meta({ description: 'The type of the event.', example: 'card.created' }),
    attempt: count.meta({ description: 'Which attempt to send this event it was.', example: 1 }),
    status: storedChoice(DELIVERY_STATUSES).meta({ description: 'How it ended.', example: 'delivered' }),
    response_status: z
      .int()
      .min(100)
      .max(999)
      .nullable()
      .meta({ description: 'The status that the receiver answered; null without an answer.', example: 200 }),
    milliseconds: count.meta({ description: 'How long it took.', example: 85 }),
    error: z.string().nullable().meta({ description: 'Why it failed.', example: null }),
    created_at: timestamp.meta({ description: 'When it ended.' }),
  })
  .meta({ id: 'WebhookDelivery', description: 'An attempt to deliver an event.' });
export const DeliveryPage = pageOf('deliveries', WebhookDelivery);
