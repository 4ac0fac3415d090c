import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { toFailure } from '../../shared/errors.ts';
import { findProcedure, type Procedure } from '../api/procedures.ts';
import type { Services } from '../api/services.ts';
import { answer, type Exchange, type Refused } from '../call/answer.ts';
import { logFailure } from '../call/logFailure.ts';
import type { EventRow } from '../domain/event/feed.ts';
import type { Following } from '../domain/event/follow.ts';

declare module 'fastify' {
  interface FastifyInstance {
    openStreams: Set<ServerResponse>;
    /** Ends all streams at once, cleanly if their readers keep up. */
    endStreams: () => void;
  }
}

/** Half of the time after which a connection without bytes is closed as unread (`connections.ts`). */
const PING_MILLISECONDS = 15_000;

/** How a surface writes server-sent events. */
export type StreamFormat = {
  begin: (cursor: string) => string;
  event: (cursor: string, event: EventRow) => string;
  /** With the cursor of now, so that a client that reconnects after a quiet time has not far to read. */
  ping: (cursor: string) => string;
  /** What a client is told that may not go on. */
  refusal: (error: unknown) => string;
};

/** Knows the open streams, for the end of the service. */
export function addEventStreams(app: FastifyInstance, { eventHub }: Services): void {
  const open = new Set<ServerResponse>();
  app.decorate('openStreams', open);
  app.decorate('endStreams', () => {
    eventHub.close();
    // A client that does not read would keep the connection open.
    for (const response of open) if (response.writableNeedDrain) response.destroy();
  });
  app.addHook('preClose', (done) => {
    app.endStreams();
    done();
  });
}

/** Begins a stream of the procedure `events.follow`, or refuses it before anything is sent. */
export async function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  readInput: () => unknown,
  format: StreamFormat,
  refuse: (refused: Refused) => FastifyReply,
): Promise<FastifyReply> {
  const { raw } = reply;
  const procedure = findProcedure(FOLLOW) as Procedure;
  const answered = await answer(request.exchange as Exchange, { procedure, index: 0, readInput });
  if ('failure' in answered) return refuse(answered);
  const following = answered.data as Following;

  const { openStreams } = request.server;
  openStreams.add(raw);
  raw.once('close', () => openStreams.delete(raw));
  request.isOpenEnded = true;
  return streamHeaders(reply).send(Readable.from(piecesOf(following, format, request), { objectMode: false }));
}

export const FOLLOW = 'events.follow';

export const streamHeaders = (reply: FastifyReply): FastifyReply =>
  reply.code(200).headers({
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store, no-transform',
    // For nginx.
    'X-Accel-Buffering': 'no',
    // A client that reconnects must not come back to a node that stops.
    Connection: 'close',
  });

/** The text of an event, made once for all who get it. */
export function memoized(write: (event: EventRow) => string): (event: EventRow) => string {
  const written = new WeakMap<EventRow, string>();
  return (event) => {
    const text = written.get(event) ?? write(event);
    written.set(event, text);
    return text;
  };
}

/** When clients should reconnect: not all at the same time. */
export const retryLine = () => `retry: ${1000 + Math.floor(Math.random() * 2000)}\n`;

async function* piecesOf(following: Following, format: StreamFormat, { log }: FastifyRequest): AsyncGenerator<string> {
  yield format.begin(following.cursor());
  try {
    for await (const sent of withPauses(following, PING_MILLISECONDS)) {
      yield sent ? format.event(sent[0], sent[1]) : format.ping(following.cursor());
    }
  } catch (error) {
    const failure = toFailure(error);
    logFailure(log, error, failure);
    // After a fault of the service the stream just ends, and the client reconnects.
    if (failure.status < 429) yield format.refusal(error);
  }
}

/** The values of a stream, and undefined whenever none has come for this long. */
async function* withPauses<Value>(
  stream: AsyncIterable<Value>,
  milliseconds: number,
): AsyncGenerator<Value | undefined> {
  const values = stream[Symbol.asyncIterator]();
  let settled: { result: IteratorResult<Value> } | { error: unknown } | undefined;
  let wake = () => {};
  const settle = (outcome: typeof settled) => {
    settled = outcome;
    wake();
  };
  const ask = () =>
    values.next().then(
      (result) => settle({ result }),
      (error) => settle({ error }),
    );
  // Not `Promise.race`, which would keep something of each pause until the next value comes.
  const pause = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  try {
    void ask();
    for (;;) {
      if (!settled) await pause();
      const outcome = settled as typeof settled | undefined;
      if (!outcome) {
        yield undefined;
        continue;
      }
      if ('error' in outcome) throw outcome.error;
      if (outcome.result.done) return;
      settled = undefined;
      yield outcome.result.value;
      void ask();
    }
  } finally {
    void values.return?.();
  }
}
