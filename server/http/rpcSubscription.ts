import { getTRPCErrorFromUnknown } from '@trpc/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { findProcedure } from '../api/procedures.ts';
import type { Refused } from '../call/answer.ts';
import { memoized, retryLine, type StreamFormat, sendEvents, streamHeaders } from './eventStream.ts';
import { writeSuperjson } from './rpcOutput.ts';

export const isSubscription = (name: string) => findProcedure(name)?.type === 'subscription';

/** Whether errors have to be messages of the stream, too: `EventSource` tells its users nothing about other responses. */
export const asksForEvents = ({ method, headers }: FastifyRequest, names: string[]) =>
  method === 'GET' && names.some(isSubscription) && (headers.accept ?? '').includes('text/event-stream');

/** Sends the events as `httpSubscriptionLink` of `@trpc/client` reads them. */
export function sendSubscription(
  request: FastifyRequest,
  reply: FastifyReply,
  readInput: () => Promise<unknown>,
  writeError: WriteError,
  refuse: (refused: Refused) => FastifyReply,
): Promise<FastifyReply> {
  const { lastEventId, 'Last-Event-Id': sameId } = request.query as Record<string, string | undefined>;
  const id = request.headers['last-event-id'] || lastEventId || sameId;
  const withId = async () => {
    const input = await readInput();
    const isObject = input != null && Object.getPrototypeOf(input) === Object.prototype;
    return id && isObject ? { ...(input as object), lastEventId: id } : input;
  };
  return sendEvents(request, reply, withId, formatWith(writeError), refuse);
}

/** An error as JSON, in the way of tRPC. */
type WriteError = (error: unknown) => string;

/** A client that hears nothing for this long reconnects. */
const CLIENT = JSON.stringify({ reconnectAfterInactivityMs: 45_000 });

const write = memoized((event) => `data: ${writeSuperjson(event)}\n`);

/** The messages of tRPC. Its `return` is never sent: a stream that ends is to be opened again. */
const formatWith = (writeError: WriteError): StreamFormat => ({
  begin: (cursor) => `${retryLine()}event: connected\ndata: ${CLIENT}\nid: ${cursor}\n\n`,
  event: (cursor, event) => `${write(event)}id: ${cursor}\n\n`,
  ping: (cursor) => `event: ping\ndata:\nid: ${cursor}\n\n`,
  refusal: (error) => errorMessage(writeError(getTRPCErrorFromUnknown(error))),
});

const errorMessage = (error: string) => `event: serialized-error\ndata: ${error}\n\n`;

/** The error of a stream that could not begin. */
export const sendErrorMessage = (reply: FastifyReply, error: string): FastifyReply =>
  streamHeaders(reply).send(`${retryLine()}${errorMessage(error)}`);
