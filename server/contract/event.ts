import { EVENT_TYPES, type EventType } from '../../shared/event.ts';
import { fieldsOf } from '../../shared/eventData.ts';
import { TEST_TYPE } from '../../shared/webhook.ts';
import type { Operation } from '../api/openapi/document.ts';
import type { Schema } from '../api/openapi/example.ts';
import { document, violations } from './violations.ts';

/** An event as JSON, as in the feed, in a stream, or in the message of a webhook. */
export type SentEvent = { id: string; type: string; data?: Record<string, unknown> } & Record<string, unknown>;

/** New events were written by this version: they have all fields that it writes. */
type Written = { isNew: boolean };

/** How an event differs from the document. Types of a later version are not checked. */
export function eventViolations(event: SentEvent, { isNew }: Written): string[] {
  if (!isKnown(event?.type)) return [];
  const { data } = schemaOf(event.type).properties!;
  const found = [...violations(data!, event), ...(isNew ? missingFields(event.type, event) : [])];
  return found.map((violation) => `${event.type}: ${violation}`);
}

/** How the message of a webhook differs from the document. */
export function messageViolations(message: { type: string; data?: SentEvent }, { isNew }: Written): string[] {
  const { type, data } = message;
  if (type !== TEST_TYPE && !isKnown(type)) return [];
  const missing = isNew && isKnown(type) && data ? missingFields(type, data) : [];
  return [...violations(schemaOf(type), message), ...missing].map((violation) => `${type}: ${violation}`);
}

/** How the events in an answer of `events.list` differ from the document. */
export const pageViolations = (answer: unknown, written: Written): string[] =>
  [(answer as { events?: SentEvent[] } | null | undefined)?.events ?? []]
    .flat()
    .flatMap((event) => eventViolations(event, written));

const isKnown = (type: string): type is EventType => Object.hasOwn(EVENT_TYPES, type);

const missingFields = (type: EventType, { data = {} }: SentEvent) =>
  [...fieldsOf(type).fields].flatMap(([name, presence]) =>
    presence === 'since this version' && !Object.hasOwn(data ?? {}, name) ? `/data must have ${name}` : [],
  );

const schemaOf = (type: string): Schema =>
  (document.webhooks as Record<string, { post: Operation }>)[type]!.post.requestBody!.content['application/json']
    .schema;
