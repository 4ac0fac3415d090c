import type { Reason } from './reasons.ts';

/** The error of a failed call, unless its signal aborted it. The message tells people what to do. */
export class DeckhandError extends Error {
  /** Always `DeckhandError`. */
  override readonly name = 'DeckhandError';
  /** The HTTP status; undefined if no answer came. */
  readonly status: number | undefined;
  /** Why the service refused, for programs; undefined if no answer came, or not from the service. */
  readonly reason: Reason | undefined;
  /** The messages of a 422 by field: `{ title: ['title is required.'] }`; otherwise empty. */
  readonly fields: Record<string, string[]>;
  /** Seconds until a retry, if the service said so. */
  readonly retryAfterSeconds: number | undefined;
  /** The id of the last request, as in the log of the service, even if no answer came; undefined if nothing was sent. */
  readonly requestId: string | undefined;
  /** The key of a mutation: the same call with this `idempotencyKey` is not executed a second time. */
  readonly idempotencyKey: string | undefined;
  /** The error data from the service; undefined if no answer came, or not from the service. */
  readonly data: RefusalData | undefined;

  constructor(message: string, { response, data, call, cause }: Circumstances = {}) {
    super(message, cause === undefined ? {} : { cause });
    this.status = data?.httpStatus ?? response?.status;
    this.reason = data?.reason;
    this.fields = data?.errors ?? {};
    this.retryAfterSeconds = data?.retryAfterSeconds ?? retryAfterSecondsOf(response);
    this.requestId = response?.headers.get('x-request-id') ?? call?.requestId;
    this.idempotencyKey = call?.idempotencyKey;
    this.data = data;
  }
}

/** What the service says about an error besides its message. */
export type RefusalData = {
  /** The error code of tRPC, as `FORBIDDEN`. */
  code: string;
  /** The HTTP status. */
  httpStatus: number;
  /** Why the service refused, for programs. */
  reason: Reason;
  /** The procedure, as `cards.create`. */
  path?: string | undefined;
  /** The messages of a 422 by field. */
  errors?: Record<string, string[]> | undefined;
  /** Seconds until a retry. */
  retryAfterSeconds?: number | undefined;
};

/** An error that the service answered with. */
export type Refusal = DeckhandError & {
  /** The HTTP status. */
  status: number;
};

/** Whether the service answered with an error: see `error.status`, `error.reason` and, for a 422, `error.fields`. */
export function isRefusal(error: unknown): error is Refusal {
  return error instanceof DeckhandError && error.status !== undefined;
}

/** What an error has to know about its call. */
export type FailedCall = {
  idempotencyKey?: string | undefined;
  requestId?: string | undefined;
  /** Whether an attempt may have reached the service. */
  wasSent?: boolean;
};

type Answer = { status: number; headers: Headers };
type Circumstances = {
  response?: Answer | undefined;
  data?: RefusalData | undefined;
  call?: FailedCall | undefined;
  cause?: unknown;
};

/** Converts what tRPC or `fetch` threw into a `DeckhandError`. */
export function errorOf(thrown: unknown, call: FailedCall = {}): DeckhandError {
  if (thrown instanceof DeckhandError) return thrown;
  const { message, data, meta, cause } = thrown as Error & { data?: RefusalData; meta?: { response?: Answer } };
  if (cause instanceof DeckhandError) return cause;
  if (cause instanceof ForeignAnswer) return notFromService(cause.response, call, cause.cause);

  const response = meta?.response;
  if (data) return new DeckhandError(message, { response, data, call });
  if (response) return notFromService(response, call, thrown);
  // Kept for the later attempts of the call: the last one may find no connection.
  call.wasSent ||= !hadNoConnection(thrown);
  const words = `No answer came (${reasonOf(thrown)}). Check the url, and that the service runs.${warningFor(call)}`;
  return new DeckhandError(words, { call, cause: thrown });
}

/** For a call that took too long. */
export function timeOutOf(milliseconds: number, call: FailedCall): DeckhandError {
  const warning = warningFor({ ...call, wasSent: call.requestId !== undefined });
  return new DeckhandError(`No answer came within ${milliseconds} ms.${warning}`, { call });
}

/** For an error thrown by one of the caller's own functions. */
export function errorOfOwn(name: string, thrown: unknown): DeckhandError {
  return new DeckhandError(`${name} threw an error: ${reasonOf(thrown)}`, { cause: thrown });
}

/** A copy with the stack of the line that made the call. Several calls of a batch can fail with one error. */
export function thrownAt({ stack = '' }: Error, error: DeckhandError): DeckhandError {
  const copy = Object.assign(new DeckhandError(error.message, { cause: error.cause }), error);
  const lines = stack.split('\n').filter((line) => /^\s*at |@/.test(line));
  return Object.assign(copy, { stack: [`${error.name}: ${error.message}`, ...lines].join('\n') });
}

/** Throws unless the answer can be from the service: a proxy without its service sends an error page. */
export function readableAnswer(response: Response): Response {
  if (!response.headers.get('content-type')?.includes('json')) throw new ForeignAnswer(response);
  const read = response.json.bind(response);
  const json = () =>
    read().catch((error: Error) => {
      // Any other error means that the connection broke.
      throw error.name === 'SyntaxError' ? new ForeignAnswer(response, error) : error;
    });
  return Object.assign(response, { json });
}

class ForeignAnswer extends Error {
  readonly response: Answer;
  constructor(response: Answer, cause?: unknown) {
    super('The answer is not from Deckhand.', { cause });
    this.response = response;
  }
}

function notFromService(response: Answer, call: FailedCall, cause: unknown): DeckhandError {
  call.wasSent = true;
  const warning = response.status >= 500 ? warningFor(call) : '';
  const message = `The answer with status ${response.status} is not from Deckhand. Check the url (without /api), and any proxy in between.${warning}`;
  return new DeckhandError(message, { response, call, cause });
}

/** Only mutations have a key. */
function warningFor({ idempotencyKey, wasSent }: FailedCall): string {
  if (idempotencyKey === undefined || !wasSent) return '';
  return " The call may have been executed: repeat it with the error's idempotencyKey to get its answer.";
}

/** Whether there was no connection on which to send the request. */
function hadNoConnection(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'].includes((error as { code?: string }).code ?? '')) return true;
  }
  return false;
}

/** Node hides why a request failed behind "fetch failed". */
function reasonOf(thrown: unknown): string {
  const causes: string[] = [];
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const message = error.message.trim().replaceAll(/\s+/g, ' ');
    if (message && !causes.includes(message)) causes.push(message);
  }
  return causes.join(': ') || 'the request failed';
}

/** The header is a number of seconds or a date. */
function retryAfterSecondsOf(response: Answer | undefined): number | undefined {
  const header = response?.headers.get('retry-after');
  if (!header) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
