import type { Context } from './context.ts';

type Prepared = Pick<Context, 'prepared'>;

/** A slow step of a mutation: named as `prepare` in its router, and called by its domain function. */
export type Preparation<Needed, Input, Result> = (context: Needed & Prepared, input: Input) => Promise<Result>;

/**
 * Makes a slow step that needs no database, such as hashing. With an idempotency key it is done before the transaction, which
 * would keep the only connection of the embedded database meanwhile; the domain function then gets that result.
 */
export const preparation =
  <Needed, Input, Result>(
    step: (context: Needed, input: Input) => Promise<Result>,
  ): Preparation<Needed, Input, Result> =>
  async (context, input) =>
    context.prepared ? (context.prepared.result as Result) : step(context, input);
