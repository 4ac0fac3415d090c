import superjson from 'superjson';
import type { FollowOptions } from './calls.ts';
import {
  DeckhandError,
  type FailedCall,
  NOT_FOLLOWED,
  type RefusalData,
  requireJson,
  toDeckhandError,
  withCallerStack,
} from './errors.ts';
import { readHeaders, validHeaders } from './headers.ts';
import { beginAttempt, type Hooks, tellOfRetry } from './hooks.ts';
import { newId } from './idempotencyKey.ts';
import { writeInput } from './input.ts';
import type { ClientOptions } from './options.ts';
import { isPassing, millisecondsBefore } from './retry.ts';
import type { Session } from './session.ts';
import { readMessages } from './sse.ts';
import { pause } from './timeOut.ts';
import { traceHeaders } from './trace.ts';

/** Follows a stream. `caller` has the stack of the line that began it. */
export type FollowStream = (call: {
  path: string;
  input: unknown;
  options: FollowOptions;
  caller: Error;
}) => AsyncGenerator<unknown, void, undefined>;

/** The service sends something every 15 seconds. A connection that is silent for longer is lost. */
const LONGEST_SILENCE_MILLISECONDS = 45_000;

/** A lost service is looked for at least every 16 seconds. */
const MOST_DOUBLINGS = 6;

/**
 * Reads a stream, and opens it again behind the last event whenever it ends. It throws what a retry can't help; other errors only
 * before it was open for the first time.
 */
export function makeFollow(options: ClientOptions, session: Session): FollowStream {
  const { retries = 3, onRequest, onResponse, onRetry } = options;

  return async function* ({ path, input, options: { signal, projectId, headers }, caller }) {
    const call: StreamCall = {
      ...{ path, kind: 'subscription', projectId, attempt: 0, hooks: { onRequest, onResponse, onRetry } },
      ...{ text: writeInput(input).text, headers: validHeaders(headers) },
      ...{ requestId: undefined, token: undefined, lastEventId: undefined },
    };
    let wasOpen = false;
    let rejected: string | undefined;
    for (let failures = 0; !signal?.aborted; ) {
      const connection = new AbortController();
      const end = () => connection.abort(signal?.reason);
      signal?.addEventListener('abort', end, { once: true });
      let failure: DeckhandError | undefined;
      try {
        call.token = await currentToken(rejected);
        for await (const { id, event } of open(options, call, connection)) {
          [failures, wasOpen, rejected] = [0, true, undefined];
          call.lastEventId = id ?? call.lastEventId;
          if (event) yield { ...(event.value as object), cursor: call.lastEventId ?? '' };
        }
      } catch (error) {
        failure = toDeckhandError(error);
      } finally {
        connection.abort();
        signal?.removeEventListener('abort', end);
      }
      if (signal?.aborted) return;
      if (failure?.status === 401 && session.renew && rejected === undefined) {
        rejected = call.token;
        tellOfRetry(call, failure, 0);
        continue;
      }
      const isGivenUp = retries === 0 || (!wasOpen && failures >= retries);
      if (failure && (isGivenUp || !isPassing(failure))) throw withCallerStack(failure, caller, path);
      const milliseconds = millisecondsBefore(Math.min(failures++, MOST_DOUBLINGS), failure ? [failure] : []);
      if (failure) tellOfRetry(call, failure, milliseconds);
      // Rejects only when the signal is aborted: the loop then ends.
      await pause(milliseconds, signal ?? new AbortController().signal).catch(() => undefined);
    }
  };

  /** Signs in before the first call, and once after a 401. */
  async function currentToken(rejected: string | undefined): Promise<string | undefined> {
    const token = await session.token();
    if (session.renew && (!token || token === rejected)) await session.renew();
    return session.token();
  }
}

type StreamCall = {
  path: string;
  kind: 'subscription';
  text: string;
  projectId: number | undefined;
  headers: Record<string, string>;
  attempt: number;
  hooks: Hooks;
  requestId: string | undefined;
  token: string | undefined;
  lastEventId: string | undefined;
};

/** Each message of one connection: the id to go on from, and the event, unless it is a ping. */
async function* open(
  { url, fetch: send = fetch, traceparent, headers }: ClientOptions,
  stream: StreamCall,
  connection: AbortController,
): AsyncGenerator<{ id: string | undefined; event?: { value: unknown } }, void, undefined> {
  const { path, text, projectId, token, lastEventId } = stream;
  const requestId = newId();
  stream.requestId = requestId;
  const call: FailedCall = { path, requestId };
  let endAttempt: ReturnType<typeof beginAttempt> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  const hear = () => {
    clearTimeout(silence);
    const lose = () =>
      connection.abort(new DeckhandError(`Nothing came for ${LONGEST_SILENCE_MILLISECONDS} ms.`, { call }));
    silence = setTimeout(lose, LONGEST_SILENCE_MILLISECONDS);
  };
  try {
    hear();
    const further = await readHeaders(headers);
    endAttempt = beginAttempt(stream);
    const response = await send(`${url.replace(/\/+$/, '')}/trpc/${path}?input=${encodeURIComponent(text)}`, {
      signal: connection.signal,
      redirect: NOT_FOLLOWED,
      headers: {
        ...further,
        ...stream.headers,
        ...traceHeaders(traceparent),
        accept: 'text/event-stream',
        'x-request-id': requestId,
        ...(token && { authorization: `Bearer ${token}` }),
        ...(projectId !== undefined && { 'x-project-id': String(projectId) }),
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
    });
    if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream'))
      throw await refusalIn(response, call);
    endAttempt(stream);
    endAttempt = undefined;
    for await (const { event, data, id } of readMessages(response.body)) {
      hear();
      if (event === 'serialized-error') throw toRefusal(response, JSON.parse(data), call);
      yield event === 'message' && data ? { id, event: { value: superjson.deserialize(JSON.parse(data)) } } : { id };
    }
  } catch (error) {
    const failure = toDeckhandError(error, call);
    endAttempt?.(stream, failure);
    throw failure;
  } finally {
    clearTimeout(silence);
  }
}

async function refusalIn(response: Response, call: FailedCall): Promise<Error> {
  const { error } = await requireJson(response).json();
  return toRefusal(response, error, call);
}

function toRefusal(
  response: Response,
  sent: Parameters<typeof superjson.deserialize>[0],
  call: FailedCall,
): DeckhandError {
  const { message, data } = superjson.deserialize<{ message: string; data: RefusalData }>(sent);
  return new DeckhandError(message, { response, data, call });
}
