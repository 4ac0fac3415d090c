import type { DeckhandError } from './errors.ts';
import type { Reason } from './reasons.ts';

/**
 * Functions that see each attempt of each call, for logs and metrics. They get no inputs, headers or tokens. They are not
 * awaited, and an error in one is printed with `console.error`: the call goes on.
 */
export type Hooks = {
  /** Called before each attempt is sent. */
  onRequest?: ((event: RequestEvent) => void) | undefined;
  /** Called after each attempt, also if it got no response. */
  onResponse?: ((event: ResponseEvent) => void) | undefined;
  /** Called when a call failed and will be sent again. */
  onRetry?: ((event: RetryEvent) => void) | undefined;
};

/** An attempt of a call. */
export type RequestEvent = {
  /** The procedure, such as `cards.create`. */
  procedure: string;
  /** What the procedure is; a subscription is a stream. */
  kind: 'query' | 'mutation' | 'subscription';
  /** 1 for the first attempt; the reconnections of a stream count, too. */
  attempt: number;
  /** The id of the request in the service's log. The calls of a batch share a request. */
  requestId: string | undefined;
};

/** The result of an attempt. */
export type ResponseEvent = RequestEvent & {
  /** The HTTP status of this call, also inside of a batch; undefined without a response. */
  status: number | undefined;
  /** The reason of a failure, if the service sent one. */
  reason: Reason | undefined;
  /** The time from the request to its response; for a stream, until it is open. */
  milliseconds: number;
};

/** A failed attempt that another one will follow. */
export type RetryEvent = RequestEvent & {
  /** The HTTP status of the failed attempt; undefined without a response. */
  status: number | undefined;
  /** The reason of the failure, if the service sent one. */
  reason: Reason | undefined;
  /** How long the client waits at least. */
  waitMilliseconds: number;
};

type Attempted = Pick<RequestEvent, 'kind' | 'attempt'> & {
  path: string;
  requestId?: string | undefined;
  hooks: Hooks;
};

const eventOf = ({ path, kind, attempt, requestId }: Attempted): RequestEvent => ({
  procedure: path,
  kind,
  attempt,
  requestId,
});

/** Tells the hooks that an attempt of these calls begins; the returned function tells them how one ended. */
export function beginAttempt(...calls: Attempted[]): (call: Attempted, error?: DeckhandError) => void {
  const begun = performance.now();
  for (const call of calls) {
    call.attempt++;
    run('onRequest', call.hooks.onRequest, eventOf(call));
  }
  return (call, error) => {
    const { status, reason } = error ?? { status: 200, reason: undefined };
    const milliseconds = performance.now() - begun;
    run('onResponse', call.hooks.onResponse, { ...eventOf(call), status, reason, milliseconds });
  };
}

export function tellOfRetry(call: Attempted, error: DeckhandError, waitMilliseconds: number): void {
  const { status, reason } = error;
  run('onRetry', call.hooks.onRetry, { ...eventOf(call), status, reason, waitMilliseconds });
}

/** Until its first `await`, an async function runs at once. */
async function run<Event>(name: keyof Hooks, hook: ((event: Event) => unknown) | undefined, event: Event) {
  try {
    await hook?.(event);
  } catch (error) {
    console.error(`${name} threw an error:`, error);
  }
}
