import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Failure } from '../../shared/errors.ts';
import { Event } from '../../shared/event.ts';
import { writeFields } from '../runtime/jsonText.ts';
import { FOLLOW, memoized, retryLine, type StreamFormat, sendEvents } from './eventStream.ts';
import { admitRequest } from './exchange.ts';
import { projectionOf } from './projection.ts';

export const STREAM_PATH = '/services/platforms/v1/events/stream';

/** The only GET of the REST facade: `events.follow` as server-sent events, for `EventSource` and `curl -N`. */
export function addRestStream(
  scope: FastifyInstance,
  sendFailure: (reply: FastifyReply, failure: Failure) => FastifyReply,
): void {
  const options = { exposeHeadRoute: false, config: { surface: 'rest' as const, operation: FOLLOW } };
  scope.get(STREAM_PATH, options, async (request, reply) => {
    await admitRequest(request);
    return sendEvents(
      request,
      reply,
      () => readInput(request),
      FORMAT,
      ({ failure }) => sendFailure(reply, failure),
    );
  });
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
