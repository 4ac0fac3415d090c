import { z } from 'zod';
import { ACCESS } from '../../domain/access/access.ts';
import { findProcedure, type RestProcedure } from '../procedures.ts';
import type { Schema } from './example.ts';
import { headerReferences, PROJECT_HEADER } from './headers.ts';
import { securityOf } from './security.ts';
import type { OpenApiDocument, Operation } from './shape.ts';

const LIST_PATH = '/services/platforms/v1/events/list';
const STREAM_PATH = '/services/platforms/v1/events/stream';

/** The stream of events, the only GET: `events.follow`, with the errors of `events.list`. */
export function addStream({ paths }: OpenApiDocument): void {
  const follow = findProcedure('events.follow') as RestProcedure;
  const { tags, responses } = (paths[LIST_PATH] as { post: Operation }).post;
  const { 200: _, ...errors } = responses;
  (paths as Record<string, object>)[STREAM_PATH] = {
    get: {
      operationId: 'eventsFollow',
      summary: follow.summary,
      description: `${follow.description} Server-sent events: \`event\` is the type, \`data\` the event as JSON, as in \`events/list\`, and \`id\` a cursor. ${ACCESS[follow.access].callers}`,
      tags,
      security: securityOf(follow),
      'x-beyond-specification': true,
      'x-client-call': 'events.follow',
      parameters: [...parametersOf(follow), LAST_EVENT_ID, PROJECT_HEADER],
      responses: {
        200: {
          description: 'The stream. It ends when the service stops or the caller may not read on: connect again.',
          headers: headerReferences(),
          content: { 'text/event-stream': { schema: { type: 'string', examples: [EXAMPLE] } } },
        },
        ...errors,
      },
    },
  };
}

const EXAMPLE = 'id: 812-1042\nevent: card.created\ndata: {"id":"1042","type":"card.created"}\n\n';

const LAST_EVENT_ID = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The `id` of the last event that was received, to go on behind it; counts more than `after`.',
  schema: { type: 'string' },
};

/** The fields of the input, without null, which a query string can't have; a list is separated by commas. */
function parametersOf({ input }: RestProcedure) {
  const { properties = {} } = z.toJSONSchema(input ?? z.object({}), { io: 'input' }) as Schema;
  return ['types', 'project_id', 'after'].map((name) => {
    const { description = '', anyOf = [] } = properties[name] ?? {};
    const { description: _, example, ...schema } = anyOf[0] ?? {};
    const isList = schema.type === 'array' && { style: 'form', explode: false };
    return { name, in: 'query', required: false, description, schema, ...isList };
  });
}
