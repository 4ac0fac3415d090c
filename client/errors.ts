import type { Reason } from './reasons.ts';

/** The same symbol in every copy of the package. */
export const BRAND = Symbol.for('deckhand-client.error');

/** The error of a failed call, unless its signal aborted it. The message tells people what to do. */
export class DeckhandError extends Error {
  /** Always `DeckhandError`. */
  override readonly name = 'DeckhandError';
  /** The procedure that failed, such as `cards.create`; that of the sign-in if the client could not sign in. */
  readonly procedure: string | undefined;
  /** The HTTP status; undefined without a response. */
  readonly status: number | undefined;
  /** A stable error code for programs; undefined without a response from the service. */
  readonly reason: Reason | undefined;
  /** The messages of a 422 by field: `{ title: ['title is required.'] }`; otherwise empty. */
  readonly fields: Record<string, string[]>;
  /** Seconds until a retry, if the service said so. */
  readonly retryAfterSeconds: number | undefined;
  /** The id of the last request in the service's log, even without a response; undefined if nothing was sent. */
  readonly requestId: string | undefined;
  /** The key of a mutation: a repeat with this `idempotencyKey` is not executed a second time. */
  readonly idempotencyKey: string | undefined;
  /** The error data of the service; undefined without a response from the service. */
  readonly data: RefusalData | undefined;

  // On the prototype: errors are printed without it.
  static {
    Object.defineProperty(DeckhandError.prototype, BRAND, { value: true });
  }

  constructor(message: string, { response, data, call, cause }: ErrorDetails = {}) {
    super(message, cause === undefined ? {} : { cause });
    this.procedure = data?.path ?? call?.path;
    this.status = data?.httpStatus ?? response?.status;
    this.reason = data?.reason;
    this.fields = data?.errors ?? {};
    this.retryAfterSeconds = data?.retryAfterSeconds ?? retryAfterSecondsOf(response);
    this.requestId = response?.headers.get('x-request-id') ?? call?.requestId;
    this.idempotencyKey = call?.idempotencyKey;
    this.data = data;
  }
}

/** The data of an error of the service, besides its message. */
export type RefusalData = {
  /** The tRPC error code, such as `FORBIDDEN`. */
  code: string;
  /** The HTTP status. */
  httpStatus: number;
  /** A stable error code for programs. */
  reason: Reason;
  /** The procedure, such as `cards.create`. */
  path?: string | undefined;
  /** The messages of a 422 by field. */
  errors?: Record<string, string[]> | undefined;
  /** Seconds until a retry. */
  retryAfterSeconds?: number | undefined;
};

/** The parts of a call that its error shows. */
export type FailedCall = {
  path?: string;
  idempotencyKey?: string | undefined;
  requestId?: string | undefined;
  /** Whether an attempt may have reached the service. */
  wasSent?: boolean;
};

type ResponseHead = { status: number; headers: Headers };
type ErrorDetails = {
  response?: ResponseHead | undefined;
  data?: RefusalData | undefined;
  call?: FailedCall | undefined;
  cause?: unknown;
};

/** Converts what tRPC or `fetch` threw into a `DeckhandError`. */
export function toDeckhandError(thrown: unknown, call: FailedCall = {}): DeckhandError {
  if (thrown instanceof DeckhandError) return thrown;
  const { message, data, meta, cause } = thrown as Error & { data?: RefusalData; meta?: { response?: ResponseHead } };
  if (cause instanceof DeckhandError) return cause;
  if (cause instanceof ForeignResponse) return notFromService(cause.response, call, cause.cause);

  const response = meta?.response;
  if (data) return new DeckhandError(message, { response, data, call });
  if (response) return notFromService(response, call, thrown);
  // Remembered across attempts: the last one may find no connection.
  call.wasSent ||= !hadNoConnection(thrown);
  const problem = `No response (${causesOf(thrown)}). Check the url, and that the service runs.`;
  return new DeckhandError(`${problem}${executedWarning(call)}`, { call, cause: thrown });
}

export function timeoutError(milliseconds: number, call: FailedCall): DeckhandError {
  const warning = executedWarning({ ...call, wasSent: call.requestId !== undefined });
  return new DeckhandError(`No response within ${milliseconds} ms.${warning}`, { call });
}

/** For an error thrown by a function of the caller, such as `token`. */
export function callbackError(name: string, thrown: unknown): DeckhandError {
  return new DeckhandError(`${name} threw an error: ${causesOf(thrown)}`, { cause: thrown });
}

/** A copy with the stack of the line that made the call: several calls of a batch can fail with one error. */
export function withCallerStack(error: DeckhandError, { stack = '' }: Error, procedure?: string): DeckhandError {
  const copy = Object.assign(new DeckhandError(error.message, { cause: error.cause }), error);
  const lines = stack.split('\n').filter((line) => /^\s*at |@/.test(line));
  return Object.assign(copy, {
    procedure: error.procedure ?? procedure,
    stack: [`${error.name}: ${error.message}`, ...lines].join('\n'),
  });
}

/** For requests: a redirect would take their body and headers to another host. The service itself never redirects a call. */
export const NOT_FOLLOWED = 'manual' satisfies RequestRedirect;

/** Throws unless the response is JSON: a proxy whose service is down sends an error page. */
export function requireJson(response: Response): Response {
  if (!response.headers.get('content-type')?.includes('json')) throw new ForeignResponse(response);
  const read = response.json.bind(response);
  const json = () =>
    read().catch((error: Error) => {
      // Any other error means that the connection broke.
      throw error.name === 'SyntaxError' ? new ForeignResponse(response, error) : error;
    });
  return Object.assign(response, { json });
}

class ForeignResponse extends Error {
  readonly response: ResponseHead;
  constructor(response: ResponseHead, cause?: unknown) {
    super('The response is not from Deckhand.', { cause });
    this.response = response;
  }
}

const CHECK_URL = 'Check the url (without /api), and any proxy in between.';

function notFromService(response: ResponseHead, call: FailedCall, cause: unknown): DeckhandError {
  call.wasSent = true;
  const warning = response.status >= 500 ? executedWarning(call) : '';
  const target = response.headers.get('location');
  const advice = target ? `It redirects to ${target}: set the url to that address, without its path.` : CHECK_URL;
  const message = `The response with status ${response.status} is not from Deckhand. ${advice}${warning}`;
  return new DeckhandError(message, { response, call, cause });
}

/** Only mutations have a key. */
function executedWarning({ idempotencyKey, wasSent }: FailedCall): string {
  if (idempotencyKey === undefined || !wasSent) return '';
  return " The call may have been executed: repeat it with the error's idempotencyKey to get its response.";
}

function hadNoConnection(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'].includes((error as { code?: string }).code ?? '')) return true;
  }
  return false;
}

/** Node's own message is only "fetch failed"; the causes say why. */
function causesOf(thrown: unknown): string {
  const causes: string[] = [];
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const message = error.message.trim().replaceAll(/\s+/g, ' ');
    if (message && !causes.includes(message)) causes.push(message);
  }
  return causes.join(': ') || 'the request failed';
}

/** The header is a number of seconds or a date. */
function retryAfterSecondsOf(response: ResponseHead | undefined): number | undefined {
  const header = response?.headers.get('retry-after');
  if (!header) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
