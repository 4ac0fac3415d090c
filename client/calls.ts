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

/** What holds for the calls of a client, unless a call says otherwise. */
export type CallDefaults = {
  /** The project to act in; without it, that of the named row, else the user's default project. */
  projectId?: number | undefined;
  /**
   * The longest time that a call may take, with its retries and the sign-in that it may need, but without the time that it waits
   * for its turn in the client. By default 60,000 for a query and 300,000 for a mutation, without the sign-in.
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
   * Calls with the same key are executed once within 24 hours; the others get the answer of the first. 1 to 255 printable ASCII
   * characters without commas. Without it, the client makes a new one for each call, and uses it for the retries.
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
       * All rows, from the page of `cursor` on; the next page is read when its first row is needed:
       * `for await (const card of client.cards.list.each({ status: 'open' }))`.
       */
      each: (...parts: Parts<Input, CallOptions>) => AsyncGenerator<RowOf<Output>, void, undefined>;
    }
  : unknown;

type RowOf<Page> = { [Name in keyof Page]: Page[Name] extends Array<infer Row> ? Row : never }[keyof Page];
