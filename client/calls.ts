import type { FurtherHeaders } from './headers.ts';

/** A procedure that only reads: `client.boards.list.query()`. */
export type Query<Input, Output> = {
  /** Calls the procedure. */
  query: Call<Input, Output, CallOptions>;
} & Each<Input, Output>;

/** A procedure that changes something: `client.cards.create.mutate({ title: 'First card' })`. */
export type Mutation<Input, Output> = {
  /** Calls the procedure. */
  mutate: Call<Input, Output, MutationOptions>;
};

/** A procedure that streams: `for await (const event of client.events.follow())`. */
export type Follow<Input, Event> = (
  ...parts: Parts<Input, FollowOptions>
) => AsyncGenerator<Followed<Event>, void, undefined>;

/** An event of a stream, with its place in the feed. */
export type Followed<Event> = Event & {
  /** Goes on behind this event, in another process, too: `client.events.follow({ after: event.cursor })`. */
  cursor: string;
};

/** Defaults for all calls of a client; each call can override them. */
export type CallDefaults = {
  /** The project to use. Default: the project of the card, group or board that you name, else the user's default project. */
  projectId?: number | undefined;
  /**
   * The maximum duration of a call with its retries and its sign-in, but without the time that it is queued in the client.
   * Default: 60,000 for a query and 300,000 for a mutation, without the sign-in.
   */
  timeoutMilliseconds?: number | undefined;
};

/** The options of a query. */
export type CallOptions = CallDefaults & {
  /** Further headers, besides those of the client. Calls with other ones are not in the same batch. */
  headers?: FurtherHeaders | undefined;
  /** Cancels the call and its retries. */
  signal?: AbortSignal | undefined;
};

/** The options of a stream. */
export type FollowOptions = {
  /** The project to use. Default: all projects of the user. */
  projectId?: number | undefined;
  /** Further headers, besides those of the client. */
  headers?: FurtherHeaders | undefined;
  /** Ends the stream, without an error. */
  signal?: AbortSignal | undefined;
};

/** The options of a mutation. */
export type MutationOptions = CallDefaults & {
  /** Further headers, besides those of the client. Calls with other ones are not in the same batch. */
  headers?: FurtherHeaders | undefined;
  /** Cancels the call and its retries; a request that was already sent may have been executed. */
  signal?: AbortSignal | undefined;
  /**
   * Calls with the same key within 24 hours are executed once; repeats get the first response. 1 to 255 printable ASCII
   * characters without commas. Default: a new key for each call, kept for its retries.
   */
  idempotencyKey?: string | undefined;
};

/** The input may be left out if it has no required field. */
export type Call<Input, Output, Options = CallOptions> = {
  (...parts: Parts<Input, Options>): Promise<Output>;
  /** The same call, with facts about its response: `const { data, meta } = await client.boards.list.query.withMeta()`. */
  withMeta: (...parts: Parts<Input, Options>) => Promise<WithMeta<Output>>;
};

/** A result with facts about its response. */
export type WithMeta<Output> = {
  /** What the procedure returns. */
  data: Output;
  /** Facts about the response. */
  meta: CallMeta;
};

/** Facts about the response to a call. The calls of a batch share a response. */
export type CallMeta = {
  /** The id of the request in the service's log; the same for all calls of a batch. */
  requestId: string;
  /** Whether this is the stored response of an earlier call with the same `idempotencyKey`. For this call, also in a batch. */
  replayed: boolean;
  /** How many attempts the call took; 1 without a retry. */
  attempts: number;
  /** The rate limit after this response, which counts each call of a batch; undefined if a proxy removed the headers. */
  quota: Quota | undefined;
};

/** How many calls the rate limit allows. */
export type Quota = {
  /** The allowed calls per minute. */
  limit: number;
  /** The remaining calls of this minute. */
  remaining: number;
};

type Parts<Input, Options> = undefined extends Input
  ? [input?: Input, options?: Options]
  : Record<string, never> extends Input
    ? [input?: Input | undefined, options?: Options]
    : [input: Input, options?: Options];

/** Lists with pages can be read row by row. */
type Each<Input, Output> = Output extends { next_cursor: string | null }
  ? {
      /**
       * All rows, starting at `cursor`. Reads a page when its first row is needed:
       * `for await (const card of client.cards.list.each({ status: 'open' }))`.
       */
      each: (...parts: Parts<Input, CallOptions>) => Rows<RowOf<Output>, Output>;
    }
  : unknown;

/** The rows of a list, read while you iterate. */
export type Rows<Row, Page> = AsyncGenerator<Row, void, undefined> & {
  /**
   * The same list, page by page: `for await (const { cards, next_cursor } of client.cards.list.each().pages())`. To go on
   * later, store `next_cursor` and begin with it: `each({ cursor })`.
   */
  pages: () => AsyncGenerator<Page, void, undefined>;
};

type RowOf<Page> = { [Name in keyof Page]: Page[Name] extends Array<infer Row> ? Row : never }[keyof Page];
