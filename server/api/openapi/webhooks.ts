import { EVENT_TYPES, Event } from '../../../shared/event.ts';
import { TEST_TYPE } from '../../../shared/webhook.ts';
import { objectOf } from './errors.ts';
import { exampleOf, type Schema } from './example.ts';

/** What webhooks send: one entry for each type of event. Adds the schemas of the messages, which have the model of events. */
export function webhooksOf(schemas: Record<string, Schema>): Record<string, object> {
  schemas.WebhookMessage = messageOf('What a receiver gets for an event.', { $ref: `#/components/schemas/${EVENT}` });
  schemas.WebhookTest = messageOf('What a receiver gets as a test.', TEST_DATA);
  const event = exampleOf(schemas[EVENT] as Schema, schemas) as object;
  const receivers = Object.entries(EVENT_TYPES).map(([type, { text }]) => [
    type,
    receiverOf(type, text, 'WebhookMessage', { ...event, type, data: {} }),
  ]);
  return {
    ...Object.fromEntries(receivers),
    [TEST_TYPE]: receiverOf(
      TEST_TYPE,
      '`webhooks/send-test` was called.',
      'WebhookTest',
      exampleOf(TEST_DATA, schemas),
    ),
  };
}

/** The name of its schema. */
const EVENT = Event.meta()?.id as string;
const TIMESTAMP = '2026-01-31T09:30:00.000Z';

const messageOf = (description: string, data: Schema) =>
  objectOf(description, {
    type: { type: 'string', description: 'What happened.', example: 'card.created' },
    timestamp: { type: 'string', format: 'date-time', description: 'When it happened.', example: TIMESTAMP },
    data,
  });

const TEST_DATA = objectOf('Which webhook it is.', {
  webhook_id: { type: 'integer', minimum: 1, description: 'The webhook.', example: 1 },
  project_id: { type: 'integer', minimum: 1, description: 'Its project.', example: 1 },
});

function receiverOf(type: string, description: string, schemaName: string, data: unknown) {
  const schema = { $ref: `#/components/schemas/${schemaName}` };
  return {
    post: {
      operationId: `${type.replace(/[._](.)/g, (_, letter: string) => letter.toUpperCase())}Webhook`,
      summary: type,
      description,
      security: [],
      parameters: Object.keys(WEBHOOK_HEADERS).map((name) => ({ $ref: `#/components/parameters/${name}` })),
      requestBody: {
        required: true,
        content: { 'application/json': { schema, example: { type, timestamp: TIMESTAMP, data } } },
      },
      responses: {
        '2XX': { description: 'Delivered. The body is ignored.' },
        '410': { description: 'The receiver is gone: the webhook is switched off.' },
        default: { description: 'Not delivered: it is sent again later.' },
      },
    },
  };
}

const header = (name: string, description: string, example: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string', example },
});

/** The headers of every message, as components of the document. */
export const WEBHOOK_HEADERS = {
  WebhookId: header('webhook-id', 'The id of the event. One that arrives twice has the same.', '1042'),
  WebhookTimestamp: header('webhook-timestamp', 'When it was sent, in seconds since 1970.', '1769851800'),
  WebhookSignature: header(
    'webhook-signature',
    'Signatures as Standard Webhooks defines them, separated by spaces.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
};
