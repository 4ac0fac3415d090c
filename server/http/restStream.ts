import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Event } from '../../shared/event.ts';
import type { Services } from '../api/services.ts';
import { writeFields } from '../runtime/jsonText.ts';
import { FOLLOW, memoized, retryLine, type StreamFormat, sendEvents } from './eventStream.ts';
import { projectionOf } from './projection.ts';

export const STREAM_PATH = '/services/platforms/v1/events/stream';

/** The only GET of the REST facade: `events.follow` as server-sent events, for `EventSource` and `curl -N`. */
export function addRestStream(scope: FastifyInstance, services: Services): void {
  scope.get(
    STREAM_PATH,
    {
      exposeHeadRoute: false,
      config: { surface: 'rest', operation: FOLLOW },
      onRequest: (request, _reply, done) => done(request.access?.get(FOLLOW)),
    },
    (request, reply) => sendEvents(request, reply, services, readInput(request), FORMAT),
  );
}

const toRest = projectionOf(Event);
const write = memoized((event) => `event: ${event.type}\ndata: ${writeFields(toRest(event) as object)}\n\n`);

/** A message without data sets only the id of the last event. */
const FORMAT: StreamFormat = {
  begin: (cursor) => `${retryLine()}id: ${cursor}\n\n`,
  event: (cursor, event) => `id: ${cursor}\n${write(event)}`,
  ping: (cursor) => `: ping\nid: ${cursor}\n\n`,
  // The stream ends, and a client that reconnects gets the 401 or 403.
  refusal: () => '',
};

function readInput({ query, headers }: FastifyRequest): Record<string, unknown> {
  const { types, project_id, lastEventId, ...others } = query as Record<string, string | string[] | undefined>;
  return {
    ...others,
    types: types === undefined ? undefined : [types].flat().flatMap((list) => list.split(',')),
    project_id: typeof project_id === 'string' && /^\d{1,15}$/.test(project_id) ? Number(project_id) : project_id,
    // Sent by `EventSource`, also empty.
    lastEventId: headers['last-event-id'] || lastEventId,
  };
}
