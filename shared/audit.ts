import { z } from 'zod';
import { EVENT_TYPES, Event, type EventType } from './event.ts';
import { id, optionalTimestamp, storedChoice, TIMESTAMP_FORMAT } from './fields.ts';
import { Page, pageOf } from './paging.ts';
import { requestExamples } from './requestExample.ts';

/** Every type of audit entry: those of events, and a sign-in, or another call that asks for a password or a code, that was refused. */
export type AuditType = EventType | 'session.refused';
const TYPES = [...Object.keys(EVENT_TYPES), 'session.refused'] as AuditType[];

export const AuditEntry = Event.extend({
  id: z.string().meta({ description: 'Its id.', example: '311' }),
  type: storedChoice(TYPES).meta({ description: 'What happened.', example: 'member.added' }),
  address: z.string().nullable().meta({
    description: 'The address that the call came from; owners see only those of members of the project.',
    example: '203.0.113.7',
  }),
}).meta({ id: 'AuditEntry', description: 'Something that somebody may have to answer for.' });
export type AuditEntry = z.output<typeof AuditEntry>;

export const AuditList = z.object({
  project_id: id
    .nullish()
    .meta({ description: 'Only entries of this project. Owners see those of the project of the call if not sent.' }),
  user_id: id.nullish().meta({ description: 'Only what this user did.' }),
  types: z
    .array(z.enum(TYPES))
    .min(1)
    .max(TYPES.length)
    .nullish()
    .meta({ description: 'Only entries of these types.', example: ['member.added'] }),
  since: optionalTimestamp.meta({
    description: `Only entries since then: ${TIMESTAMP_FORMAT}.`,
    example: '2026-01-31',
  }),
  ...Page.shape,
});
AuditList.register(requestExamples, { example: { types: ['member.added', 'member.removed'], limit: 20 } });
export type AuditList = z.output<typeof AuditList>;

export const AuditPage = pageOf('entries', AuditEntry);
