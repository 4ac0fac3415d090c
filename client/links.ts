import type { Operation, TRPCLink } from '@trpc/client';
import type { AnyTRPCRouter } from '@trpc/server';
import { observable, observableToPromise } from '@trpc/server/observable';
import { contextOf } from './callContext.ts';
import type { CallOptions } from './calls.ts';
import { DeckhandError, errorOf, type FailedCall, timeOutOf } from './errors.ts';
import { keyOf } from './idempotencyKey.ts';
import type { Session } from './session.ts';

/** The tRPC links that a call and its answer pass through. */
type Link = TRPCLink<AnyTRPCRouter>;

/** Ends a call as soon as its signal aborts, even if other calls of its batch continue. */
export function ending(): Link {
  return linkOf(({ signal }, send) => untilAborted(send(), signal));
}

/** Signs in before the first call, and again after a 401; a second 401 is thrown. */
export function signingIn({ token, renew }: Session): Link {
  return linkOf(async (call, send) => {
    if (!renew || isSignIn(call)) return send();

    if (!(await token())) await renew();
    const used = await token();
    try {
      return await send();
    } catch (error) {
      if ((error as DeckhandError).status !== 401) throw error;
      if ((await token()) === used) await renew();
      return send();
    }
  });
}

/** A sign-in is never batched and has no token: calls that wait for the sign-in would deadlock. */
export const isSignIn = ({ path }: Pick<Operation, 'path'>) => path === 'auth.authenticate';

/** Sends the calls of each project as batches of their own, since a request names at most one project. */
export function batchingByProject(batchOf: (projectId: number | undefined) => Link): Link {
  return (runtime) => {
    const batches = new Map<number | undefined, ReturnType<Link>>();
    return (call) => {
      const { projectId } = contextOf(call.op);
      const batch = batches.get(projectId) ?? batchOf(projectId)(runtime);
      if (!batches.has(projectId)) {
        batches.set(projectId, batch);
        // A batch is sent in the next turn of the event loop. Kept no longer: a program may act in thousands of projects.
        setTimeout(() => batches.delete(projectId));
      }
      return batch(call);
    };
  };
}

/** Retries failed calls that are safe to repeat, with exponential backoff and never before Retry-After. */
export function retrying(retries: number): Link {
  return linkOf(async (call, send) => {
    const { signal } = call;
    for (let retry = 0; ; retry++) {
      try {
        return await send();
      } catch (thrown) {
        const error = thrown as DeckhandError;
        if (retry >= retries || signal?.aborted || !isSafeToRepeat(call, error)) throw error;
        if ((error.retryAfterSeconds ?? 0) > LONGEST_WAIT_SECONDS) throw error;

        await pause(millisecondsBefore(retry, error), signal);
      }
    }
  });
}

/**
 * A call that got a 429 was not executed. After other failures that is unknown: a query may be executed twice, and a mutation
 * with an idempotency key will not be. An error before the request, as of a `token` function, is left to the caller.
 */
function isSafeToRepeat(call: Operation, { status, requestId }: DeckhandError): boolean {
  if (status === 429) return true;
  const isUnknown = status === undefined ? requestId !== undefined : PASSING_STATUSES.has(status);
  return isUnknown && (call.type === 'query' || keyOf(call) !== undefined);
}

/** The statuses of a proxy while the service is down. */
const PASSING_STATUSES = new Set([502, 503, 504]);

const FIRST_WAIT_SECONDS = 0.25;
/** The rate limit window is a minute; a longer wait is left to the caller. */
const LONGEST_WAIT_SECONDS = 60;

/** Exponential backoff with jitter, so that many clients do not retry at the same time. */
function millisecondsBefore(retry: number, { retryAfterSeconds = 0 }: DeckhandError): number {
  const backOffSeconds = Math.min(FIRST_WAIT_SECONDS * 2 ** retry, LONGEST_WAIT_SECONDS) * (1 - Math.random() / 2);
  return (retryAfterSeconds + backOffSeconds) * 1000;
}

/**
 * Builds a tRPC link from a function that may send a call several times. `send` throws a `DeckhandError`, or the reason of the
 * signal if the call was aborted.
 */
function linkOf<Result>(handle: (call: Operation, send: () => Promise<Result>) => Promise<Result>): Link {
  return () =>
    ({ op, next }) =>
      observable((observer) => {
        const send = async () => {
          op.signal?.throwIfAborted();
          return observableToPromise(next(op)).then(
            (result) => result as Result,
            (thrown) => Promise.reject(errorOf(thrown, contextOf(op))),
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

/**
 * Runs a call with a signal of its own, which its time-out aborts, too. So no listeners stay on the caller's signal, which may be
 * used for many calls.
 */
export async function withOwnSignal<Result>(
  { signal, timeoutMilliseconds }: CallOptions,
  call: FailedCall,
  send: (own: AbortSignal | undefined) => Promise<Result>,
): Promise<Result> {
  if (!signal && timeoutMilliseconds === undefined) return send(undefined);
  const controller = new AbortController();
  const end = () => controller.abort(signal?.reason);
  const timer =
    timeoutMilliseconds !== undefined &&
    setTimeout(() => controller.abort(timeOutOf(timeoutMilliseconds, call)), validTimeOut(timeoutMilliseconds));
  signal?.addEventListener('abort', end, { once: true });
  try {
    return await send(controller.signal);
  } finally {
    if (timer) clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  }
}

/** The longest time that a timer accepts, 24 days: after a longer one it would fire at once. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

function validTimeOut(milliseconds: number): number {
  if (milliseconds > 0 && milliseconds <= LONGEST_TIMEOUT) return milliseconds;
  throw new DeckhandError(`timeoutMilliseconds must be from 1 to ${LONGEST_TIMEOUT}.`);
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
