import type { Reason } from './reasons.ts';

/** The error of a failed call, unless its signal aborted it. The message tells people what to do. */
export class DeckhandError extends Error {
  override readonly name = 'DeckhandError';
  /** The HTTP status; undefined if no answer came. */
  readonly status: number | undefined;
  /** Why the service refused, for programs; undefined if no answer came, or not from the service. */
  readonly reason: Reason | undefined;
  /** The messages of a 422 by field: `{ title: ['title is required.'] }`; otherwise empty. */
  readonly fields: Record<string, string[]>;
  /** Seconds until a retry, if the service said so. */
  readonly retryAfterSeconds: number | undefined;
  /** The error data from the service; undefined if no answer came, or not from the service. */
  readonly data: RefusalData | undefined;

  constructor(message: string, { response, data, cause }: Circumstances) {
    super(message, { cause });
    this.status = data?.httpStatus ?? response?.status;
    this.reason = data?.reason;
    this.fields = data?.errors ?? {};
    this.retryAfterSeconds = data?.retryAfterSeconds ?? retryAfterSecondsOf(response);
    this.data = data;
  }
}

export type RefusalData = {
  code: string;
  httpStatus: number;
  reason: Reason;
  path?: string | undefined;
  errors?: Record<string, string[]> | undefined;
  retryAfterSeconds?: number | undefined;
};

export type Refusal = DeckhandError & { status: number };

/** Whether the service answered with an error: see `error.status`, `error.reason` and, for a 422, `error.fields`. */
export function isRefusal(error: unknown): error is Refusal {
  return error instanceof DeckhandError && error.status !== undefined;
}

type Answer = { status: number; headers: Headers };
type Circumstances = { response?: Answer | undefined; data?: RefusalData | undefined; cause?: unknown };

/** Converts what tRPC or `fetch` threw into a `DeckhandError`. */
export function errorOf(thrown: unknown): DeckhandError {
  if (thrown instanceof DeckhandError) return thrown;
  const { message, data, meta, cause } = thrown as Error & { data?: RefusalData; meta?: { response?: Answer } };
  if (cause instanceof DeckhandError) return cause;

  if (data) return new DeckhandError(message, { response: meta?.response, data, cause: thrown });
  if (meta?.response) return notFromService(meta.response, thrown);
  const warning = wasNeverSent(thrown) ? '' : ' A mutation may still have been executed.';
  return new DeckhandError(
    `No answer came (${reasonOf(thrown)}). Check the url, and that the service runs.${warning}`,
    { cause: thrown },
  );
}

/** For an error thrown by one of the caller's own functions. */
export function errorOfOwn(name: string, thrown: unknown): DeckhandError {
  return new DeckhandError(`${name} threw an error: ${reasonOf(thrown)}`, { cause: thrown });
}

/** Throws unless the answer can be from the service: a proxy without its service sends an error page. */
export function readableAnswer(response: Response): Response {
  if (!response.headers.get('content-type')?.includes('json')) throw notFromService(response);
  const read = response.json.bind(response);
  const json = () =>
    read().catch((error: Error) => {
      // Any other error means that the connection broke.
      throw error.name === 'SyntaxError' ? notFromService(response, error) : error;
    });
  return Object.assign(response, { json });
}

function notFromService(response: Answer, cause?: unknown): DeckhandError {
  const message = `The answer with status ${response.status} is not from Deckhand. Check the url (without /api), and any proxy in between.`;
  return new DeckhandError(message, { response, cause });
}

/** Whether there was no connection on which to send the request. */
function wasNeverSent(thrown: unknown): boolean {
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
