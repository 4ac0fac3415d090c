import { defineEntity, p } from '@mikro-orm/core';
import type { EventType } from '../../../shared/event.ts';
import { DELIVERY_STATUSES, DISABLED_REASONS } from '../../../shared/webhook.ts';
import { created, identity, refersTo, timestamp } from './columns.ts';
import { Project } from './platform.ts';
import { User } from './user.ts';

/** A receiver of the events of a project, and how far it has got in the log. */
export const Webhook = defineEntity({
  name: 'Webhook',
  tableName: 'webhooks',
  properties: {
    id: identity(),
    project_id: () => refersTo(Project, 'project_id').deleteRule('cascade'),
    url: p.text(),
    /** Null for all types. */
    types: p.array().$type<EventType[]>().nullable(),
    /** Encrypted, like the one before the last rotation, which signs for a while, too. */
    secret: p.text(),
    previous_secret: p.text().nullable(),
    previous_expires_at: timestamp().nullable(),
    is_active: p.boolean().default(true),
    /** Set if the service switched it off. */
    disabled_reason: p.enum([...DISABLED_REASONS]).nullable(),
    /** The place in the feed behind the last delivered event (`domain/event/feed.ts`). */
    after_transaction: p.string().columnType('xid8'),
    after_event: p.bigint('string').columnType('bigint'),
    /** Failed attempts since the last success, and when the first one was. */
    failures: p.integer().default(0),
    first_failed_at: timestamp().nullable(),
    next_attempt_at: timestamp().defaultRaw('now()'),
    /** A node is delivering; if that node is killed, others go on after this time. */
    leased_until: timestamp().nullable(),
    /** The process that delivers, and its lease as it renewed it last (`domain/event/webhookLease.ts`). */
    lease_holder: p.string().length(36).nullable(),
    kept_until: timestamp().nullable(),
    /** How long the receiver takes for a message, on average over the last ones. */
    pace_milliseconds: p.integer().nullable(),
    /** Set while a test event waits to be sent, from when on; while it is sent, when another process may send it. */
    test_requested_at: timestamp().nullable(),
    /** How many attempts there were, which numbers them. */
    deliveries: p.integer().default(0),
    /** Events that are sent again on their own, with the first one first; 0 stands for a test. */
    resend_events: p.array().$type<string[]>().columnType('bigint[]').nullable(),
    /** When the events of `webhooks.redeliver` should have been sent; until then they count as waiting. */
    redelivery_ends_at: timestamp().nullable(),
    /** Whose right to the events counts (`domain/event/webhookRight.ts`). */
    created_by: () => refersTo(User, 'created_by').nullable().deleteRule('set null'),
    /** Not a foreign key: a key that was removed has ended, too. */
    key_id: p.integer().nullable(),
    /** When they were first found to have lost it. */
    right_lost_at: timestamp().nullable(),
    ...created(),
  },
  checks: [
    {
      name: 'webhooks_previous_check',
      expression: '(previous_secret is null) = (previous_expires_at is null)',
    },
  ],
  indexes: [
    { properties: ['project_id', 'id'] },
    { name: 'webhooks_due_index', properties: ['next_attempt_at'], where: 'is_active' },
    {
      name: 'webhooks_tested_index',
      properties: ['test_requested_at'],
      where: 'test_requested_at is not null',
    },
    { properties: ['created_by'], where: 'created_by is not null' },
    {
      name: 'webhooks_redelivery_index',
      properties: ['redelivery_ends_at'],
      where: 'redelivery_ends_at is not null',
    },
  ],
});

/** An attempt to deliver an event; without an event if it was a test. */
export const WebhookDelivery = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_deliveries',
  properties: {
    webhook_id: () => refersTo(Webhook, 'webhook_id').primary().deleteRule('cascade'),
    number: p.integer().primary(),
    event_id: p.bigint('string').columnType('bigint').nullable(),
    type: p.string().length(100),
    attempt: p.integer(),
    status: p.enum([...DELIVERY_STATUSES]),
    response_status: p.integer().nullable(),
    milliseconds: p.integer(),
    error: p.text().nullable(),
    created_at: timestamp().defaultRaw('now()'),
  },
  indexes: [{ properties: ['created_at'] }],
});
