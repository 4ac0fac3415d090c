/** What a call throws, unless its signal ended it. The message is for people and says what to do. */
export class DeckhandError extends Error {
  override readonly name = 'DeckhandError';
  /** The HTTP status of the answer; undefined when none came. */
  readonly status: number | undefined;
  /** What was refused in a 422, field by field: `{ title: ['title is required.'] }`; otherwise empty. */
  readonly fields: Record<string, string[]>;
  /** In how many seconds to try again, where the service said so. */
  readonly retryAfterSeconds: number | undefined;
  /** What the service sent about the error; undefined when no answer came, or not from the service. */
  readonly data: RefusalData | undefined;

  constructor(message: string, { response, data, cause }: Circumstances) {
    super(message, { cause });
    this.status = data?.httpStatus ?? response?.status;
    this.fields = data?.errors ?? {};
    this.retryAfterSeconds = data?.retryAfterSeconds ?? retryAfterSecondsOf(response);
    this.data = data;
  }
}

export type RefusalData = {
  code: string;
  httpStatus: number;
  path?: string | undefined;
  errors?: Record<string, string[]> | undefined;
  retryAfterSeconds?: number | undefined;
};

export type Refusal = DeckhandError & { status: number };

/** Whether a call was answered, with a refusal: `error.status` and, for a 422, `error.fields` say why. */
export function isRefusal(error: unknown): error is Refusal {
  return error instanceof DeckhandError && error.status !== undefined;
}

type Answer = { status: number; headers: Headers };
type Circumstances = { response?: Answer | undefined; data?: RefusalData | undefined; cause?: unknown };

/** Puts whatever tRPC or `fetch` threw into our words. */
export function errorOf(thrown: unknown): DeckhandError {
  if (thrown instanceof DeckhandError) return thrown;
  const { message, data, meta, cause } = thrown as Error & { data?: RefusalData; meta?: { response?: Answer } };
  if (cause instanceof DeckhandError) return cause;

  if (data) return new DeckhandError(message, { response: meta?.response, data, cause: thrown });
  if (meta?.response) return notFromService(meta.response, thrown);
  return new DeckhandError(
    `No answer came (${reasonOf(thrown)}). Check the url, and that the service runs. A change may have been made all the same.`,
    { cause: thrown },
  );
}

/** For what a function threw that the caller gave: neither the service nor the network is to blame. */
export function errorOfOwn(name: string, thrown: unknown): DeckhandError {
  return new DeckhandError(`${name} threw an error: ${reasonOf(thrown)}`, { cause: thrown });
}

/** Lets an answer pass that can be the service's own: a proxy that has lost the service sends a page of its own. */
export function readableAnswer(response: Response): Response {
  if (!response.headers.get('content-type')?.includes('json')) throw notFromService(response);
  const read = response.json.bind(response);
  const json = () =>
    read().catch((error: Error) => {
      // Anything else says that it broke off on its way.
      throw error.name === 'SyntaxError' ? notFromService(response, error) : error;
    });
  return Object.assign(response, { json });
}

function notFromService(response: Answer, cause?: unknown): DeckhandError {
  const message = `The answer, with status ${response.status}, is not one of Deckhand's. Check the url, and what stands between here and the service.`;
  return new DeckhandError(message, { response, cause });
}

/** Node hides why a request failed behind "fetch failed". */
function reasonOf(thrown: unknown): string {
  const causes: string[] = [];
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error.message && !causes.includes(error.message)) causes.push(error.message);
  }
  return causes.join(': ') || 'the request failed';
}

/** The header holds seconds, or the moment from which on. */
function retryAfterSecondsOf(response: Answer | undefined): number | undefined {
  const header = response?.headers.get('retry-after');
  if (!header) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
