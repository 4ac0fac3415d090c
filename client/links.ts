import type { Operation, TRPCLink } from '@trpc/client';
import type { AnyTRPCRouter } from '@trpc/server';
import { observable, observableToPromise } from '@trpc/server/observable';
import { type DeckhandError, errorOf } from './errors.ts';
import type { Session } from './session.ts';

/** The steps that a call takes on its way to the service, and that its answer takes back. */
type Link = TRPCLink<AnyTRPCRouter>;

/** Ends a call with its signal: at once, even if others that travel with it go on. */
export function ending(): Link {
  return linkOf(({ signal }, send) => untilAborted(send(), signal));
}

/** Signs in before the first call, and once more when a call is answered 401; a second 401 is thrown. */
export function signingIn({ token, renew }: Session): Link {
  return linkOf(async (call, send) => {
    if (!renew || isSignIn(call)) return send();

    if (!token()) await renew();
    const used = token();
    try {
      return await send();
    } catch (error) {
      if ((error as DeckhandError).status !== 401) throw error;
      if (token() === used) await renew();
      return send();
    }
  });
}

/** A sign-in travels alone and without a token: what others wait for must not wait for others. */
export const isSignIn = ({ path }: Operation) => path === 'auth.authenticate';

/** Repeats a call that failed and is safe to repeat: soon, then ever later, but not before the service said. */
export function retrying(retries: number): Link {
  return linkOf(async ({ type, signal }, send) => {
    for (let retry = 0; ; retry++) {
      try {
        return await send();
      } catch (thrown) {
        const error = thrown as DeckhandError;
        if (retry >= retries || signal?.aborted || !isSafeToRepeat(type, error)) throw error;
        if ((error.retryAfterSeconds ?? 0) > LONGEST_WAIT_SECONDS) throw error;

        await pause(millisecondsBefore(retry, error), signal);
      }
    }
  });
}

/** A 429 was not carried out. Of other failures nobody knows, and only a query does no harm twice. */
function isSafeToRepeat(type: string, { status }: DeckhandError): boolean {
  if (status === 429) return true;
  return type === 'query' && (status === undefined || PASSING_STATUSES.has(status));
}

/** What a proxy answers while the service is away. */
const PASSING_STATUSES = new Set([502, 503, 504]);

const FIRST_WAIT_SECONDS = 0.25;
/** The rate limit counts by the minute; whoever has to wait longer should know. */
const LONGEST_WAIT_SECONDS = 60;

/** Twice as long each time, less up to a half by chance, so that many clients don't come back at once. */
function millisecondsBefore(retry: number, { retryAfterSeconds = 0 }: DeckhandError): number {
  const backOffSeconds = Math.min(FIRST_WAIT_SECONDS * 2 ** retry, LONGEST_WAIT_SECONDS) * (1 - Math.random() / 2);
  return (retryAfterSeconds + backOffSeconds) * 1000;
}

/**
 * A tRPC link, written as a function that sends a call on, as often as it likes. What `send` throws is a `DeckhandError`; or
 * the reason of the signal, if the call was ended before.
 */
function linkOf<Result>(handle: (call: Operation, send: () => Promise<Result>) => Promise<Result>): Link {
  return () =>
    ({ op, next }) =>
      observable((observer) => {
        const send = async () => {
          op.signal?.throwIfAborted();
          return observableToPromise(next(op)).then(
            (result) => result as Result,
            (thrown) => Promise.reject(errorOf(thrown)),
          );
        };
        handle(op, send).then(
          (result) => {
            observer.next(result as never);
            observer.complete();
          },
          (error) => observer.error(error),
        );
      });
}

type Signal = Operation['signal'];

/** Gives a call a signal of its own, that goes with it: what listens to the caller's would stay, and that may serve for many. */
export async function withOwnSignal<Result>(
  signal: AbortSignal | undefined,
  send: (own: AbortSignal | undefined) => Promise<Result>,
): Promise<Result> {
  if (!signal) return send(signal);
  const controller = new AbortController();
  const end = () => controller.abort(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  try {
    return await send(controller.signal);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

async function pause(milliseconds: number, signal: Signal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  try {
    await untilAborted(passed, signal);
  } finally {
    clearTimeout(timer);
  }
}

function untilAborted<Result>(work: Promise<Result>, signal: Signal): Promise<Result> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
