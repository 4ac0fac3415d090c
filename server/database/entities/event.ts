import { defineEntity, p } from '@mikro-orm/core';
import type { AuditType } from '../../../shared/audit.ts';
import type { EventData, EventSurface, EventType } from '../../../shared/event.ts';
import { CARD_OF_EVENT } from './cardOfEvent.ts';
import { timestamp } from './columns.ts';

/** Columns without foreign keys: what happened stays known after its rows are removed, and an event costs no lookup. */
const happened = <Type extends AuditType>(sequence: string) => ({
  /** From a sequence, with a jump after a restore or a fail-over: see `incarnation.ts`. */
  id: p.bigint('string').columnType('bigint').primary().defaultRaw(`nextval('${sequence}'::regclass)`),
  created_at: timestamp().defaultRaw('now()'),
  type: p.string().length(100).$type<Type>(),
  platform_id: p.integer().nullable(),
  project_id: p.integer().nullable(),
  user_id: p.integer().nullable(),
  key_id: p.integer().nullable(),
  surface: p.string().length(20).$type<EventSurface>(),
  request_id: p.string().length(200).nullable(),
  subject_id: p.integer().nullable(),
  data: p.json<EventData>().defaultRaw(`'{}'`),
});

/** What changed, in the transaction of the change. Its order is that of the transactions: see `domain/event/feed.ts`. */
export const Event = defineEntity({
  name: 'Event',
  tableName: 'events',
  properties: {
    transaction_id: p.string().columnType('xid8').primary().defaultRaw('pg_current_xact_id()'),
    ...happened<EventType>('events_id_seq'),
  },
  indexes: [
    { properties: ['project_id', 'transaction_id', 'id'] },
    { properties: ['created_at'] },
    {
      name: 'events_card_index',
      expression: `create index "events_card_index" on "events" ("project_id", ${CARD_OF_EVENT}, "transaction_id", "id") where ${CARD_OF_EVENT} is not null`,
    },
  ],
});

/** What owners and superadmins may have to answer for, with where it came from; kept longer than events. */
export const AuditEntry = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entries',
  properties: { ...happened<AuditType>('audit_entries_id_seq'), address: p.string().length(100).nullable() },
  indexes: [{ properties: ['project_id', 'id'] }, { properties: ['user_id', 'id'] }, { properties: ['created_at'] }],
});
