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
  /** Cancels the call and its retries. */
  signal?: AbortSignal | undefined;
};

/** The options of a mutation. */
export type MutationOptions = CallDefaults & {
  /** Cancels the call and its retries; a request that was already sent may have been executed. */
  signal?: AbortSignal | undefined;
  /**
   * Calls with the same key within 24 hours are executed once; repeats get the first response. 1 to 255 printable ASCII
   * characters without commas. Default: a new key for each call, kept for its retries.
   */
  idempotencyKey?: string | undefined;
};

/** The input may be left out if it has no required field. */
export type Call<Input, Output, Options = CallOptions> = (...parts: Parts<Input, Options>) => Promise<Output>;

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
      each: (...parts: Parts<Input, CallOptions>) => AsyncGenerator<RowOf<Output>, void, undefined>;
    }
  : unknown;

type RowOf<Page> = { [Name in keyof Page]: Page[Name] extends Array<infer Row> ? Row : never }[keyof Page];
