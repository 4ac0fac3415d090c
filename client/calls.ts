/** A procedure that only reads: `client.boards.list.query()`. */
export type Query<Input, Output> = { query: Call<Input, Output> };

/** A procedure that changes something: `client.cards.create.mutate({ title: 'First card' })`. */
export type Mutation<Input, Output> = { mutate: Call<Input, Output> };

export type CallOptions = {
  /** Cancels the call and its retries; a request that was already sent may have been executed. */
  signal?: AbortSignal | undefined;
};

/** The input is optional here if the procedure's input is. */
export type Call<Input, Output> = (
  ...parts: undefined extends Input ? [input?: Input, options?: CallOptions] : [input: Input, options?: CallOptions]
) => Promise<Output>;
