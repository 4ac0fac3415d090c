import type { Followed } from '../calls.ts';

/** The input and the output of a procedure. */
export type InputOf<Procedure> = NonNullable<PartsOf<Procedure>['input']>;
export type OutputOf<Procedure> = PartsOf<Procedure>['output'];

/** The input is undefined where it may be left out. */
export type PartsOf<Procedure> = Procedure extends { query: infer Call } | { mutate: infer Call }
  ? Call extends (...parts: infer Parts) => Promise<infer Output>
    ? { input: Parts[0 & keyof Parts]; output: Output }
    : never
  : never;

/** The input and the events of a stream. */
export type StreamPartsOf<Procedure> = Procedure extends (
  ...parts: infer Parts
) => AsyncGenerator<Followed<infer Event>, void, undefined>
  ? { input: Parts[0 & keyof Parts]; event: Event }
  : never;
