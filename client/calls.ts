/** A procedure that only reads: `client.boards.list.query()`. */
export type Query<Input, Output> = { query: Call<Input, Output, CallOptions> };

/** A procedure that changes something: `client.cards.create.mutate({ title: 'First card' })`. */
export type Mutation<Input, Output> = { mutate: Call<Input, Output, MutationOptions> };

export type CallOptions = {
  /** Cancels the call and its retries; a request that was already sent may have been executed. */
  signal?: AbortSignal | undefined;
};

export type MutationOptions = CallOptions & {
  /**
   * Calls with the same key are executed once within 24 hours; the others get the answer of the first. 1 to 255 printable ASCII
   * characters without commas. Without it, the client makes a new one for each call, and uses it for the retries.
   */
  idempotencyKey?: string | undefined;
};

/** The input is optional here if the procedure's input is. */
export type Call<Input, Output, Options = CallOptions> = (
  ...parts: undefined extends Input ? [input?: Input, options?: Options] : [input: Input, options?: Options]
) => Promise<Output>;
