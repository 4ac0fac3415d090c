import { EVENT_TYPES, Event, EventData, type EventType, isOfProjects } from '../../../shared/event.ts';
import { fieldsOf } from '../../../shared/eventData.ts';
import { TEST_TYPE } from '../../../shared/webhook.ts';
import { objectOf } from './errors.ts';
import { exampleOf, type Schema } from './example.ts';

/** What webhooks send: one entry for each type of event. Adds the schema of the test message. */
export function webhooksOf(schemas: Record<string, Schema>): Record<string, object> {
  schemas.WebhookTest = messageOf('What a receiver gets as a test.', TEST_DATA);
  const receivers = Object.entries(EVENT_TYPES).map(([type, { text }]) => {
    const schema = messageOf(text, eventOf(type as EventType, schemas), type);
    return [type, receiverOf(type, text, schema, withoutCount(exampleOf(schema, schemas) as Message))];
  });
  const test = { $ref: '#/components/schemas/WebhookTest' };
  const testExample = { type: TEST_TYPE, timestamp: TIMESTAMP, data: exampleOf(TEST_DATA, schemas) };
  return {
    ...Object.fromEntries(receivers),
    [TEST_TYPE]: receiverOf(TEST_TYPE, '`webhooks/send-test` was called.', test, testExample),
  };
}

/** The names of the schemas of events. */
const [EVENT, DATA] = [Event, EventData].map((model) => model.meta()?.id as string) as [string, string];

/** The events of one type: which fields its data has, and whether there is a subject. */
function eventOf(type: EventType, schemas: Record<string, Schema>): Schema {
  const { hasSubject, fields } = fieldsOf(type);
  const [event = {}, known = {}] = [EVENT, DATA].map((name) => schemas[name]?.properties);
  const isNewRow = type.endsWith('.created') && fields.has('version');
  const properties = {
    ...Object.fromEntries([...fields.keys()].map((name) => [name, known[name] ?? {}])),
    ...(isNewRow && { version: { ...known.version, example: 1 } }),
  };
  const required = [...fields].flatMap(([name, presence]) => (presence === 'always' ? name : []));
  const { anyOf: [number] = [], ...subject } = event.subject_id ?? {};
  return {
    ...schemas[EVENT],
    properties: {
      ...event,
      type: { type: 'string', const: type, description: 'What happened.' },
      ...(!isOfProjects(type) && { project_id: { ...event.project_id, example: null } }),
      subject_id: hasSubject ? { ...number, ...subject } : { ...subject, type: 'null', example: null },
      data: { type: 'object', description: 'Ids and names of changed fields, no contents.', properties, required },
    },
  };
}

type Message = { type: EventType; data: { data: { ids?: unknown; count?: unknown } } };

/** With ids, an event has no count, unless required. */
function withoutCount(message: Message): Message {
  const { count, ...data } = message.data.data;
  const isCounted = fieldsOf(message.type).fields.get('count') === 'always';
  return data.ids === undefined || isCounted ? message : { ...message, data: { ...message.data, data } };
}

const TIMESTAMP = '2026-01-31T09:30:00.000Z';

const messageOf = (description: string, data: Schema, type?: string) =>
  objectOf(description, {
    type: {
      type: 'string',
      ...(type ? { const: type } : { example: 'card.created' }),
      description: 'What happened.',
    },
    timestamp: { type: 'string', format: 'date-time', description: 'When it happened.', example: TIMESTAMP },
    data,
  });

const TEST_DATA = objectOf('Which webhook it is.', {
  webhook_id: { type: 'integer', minimum: 1, description: 'The webhook.', example: 1 },
  project_id: { type: 'integer', minimum: 1, description: 'Its project.', example: 1 },
});

function receiverOf(type: string, description: string, schema: Schema, example: unknown) {
  return {
    post: {
      operationId: `${type.replace(/[._](.)/g, (_, letter: string) => letter.toUpperCase())}Webhook`,
      summary: type,
      description,
      security: [],
      parameters: Object.keys(WEBHOOK_HEADERS).map((name) => ({ $ref: `#/components/parameters/${name}` })),
      requestBody: {
        required: true,
        content: { 'application/json': { schema, example } },
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
