/** A procedure that only reads: `client.boards.list.query()`. */
export type Query<Input, Output> = { query: Call<Input, Output> };

/** A procedure that changes something: `client.cards.create.mutate({ title: 'First card' })`. */
export type Mutation<Input, Output> = { mutate: Call<Input, Output> };

export type CallOptions = {
  /** Ends the call, waiting for another attempt included; what was sent may have been carried out. */
  signal?: AbortSignal | undefined;
};

/** An input that may be left out may be left out here too. */
export type Call<Input, Output> = (
  ...parts: undefined extends Input ? [input?: Input, options?: CallOptions] : [input: Input, options?: CallOptions]
) => Promise<Output>;
