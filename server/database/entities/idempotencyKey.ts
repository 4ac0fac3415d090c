import { defineEntity, p } from '@mikro-orm/core';
import { refersTo, timestamp } from './columns.ts';
import { User } from './user.ts';

/** A mutation that was called with an `Idempotency-Key`, with its response for repeats. */
export const IdempotencyKey = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_keys',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary().deleteRule('cascade'),
    procedure: p.string().length(100).primary(),
    key: p.string().length(255).primary(),
    input_hash: p.string().length(64),
    created_at: timestamp().defaultRaw('now()'),
    /** The call that works in several steps, and until when it may be silent before a repeat takes over. */
    holder: p.uuid().nullable(),
    held_until: timestamp().nullable(),
    finished_at: timestamp().nullable(),
    /** As superjson, with the projects whose access a repeat checks again. Null after the end: the response is not kept. */
    answer: p.text().nullable(),
  },
  indexes: [{ properties: ['created_at'] }],
  checks: [
    { name: 'idempotency_keys_answer_check', expression: 'answer is null or finished_at is not null' },
    { name: 'idempotency_keys_holder_check', expression: '(holder is null) = (held_until is null)' },
  ],
});

/** How much of a user's keys was stored in each hour. Old hours just stop counting, so that nothing is ever subtracted. */
export const IdempotencyUsage = defineEntity({
  name: 'IdempotencyUsage',
  tableName: 'idempotency_usage',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary().deleteRule('cascade'),
    hour: timestamp().primary(),
    keys: p.integer(),
    answer_bytes: p.integer(),
  },
  indexes: [{ properties: ['hour'] }],
});
