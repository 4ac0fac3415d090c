import { BRAND, type DeckhandError } from './errors.ts';
import type { ProcedureReasons } from './procedures.ts';

/** An error that the service responded with. */
export type Refusal = DeckhandError & {
  /** The HTTP status. */
  status: number;
};

/** Whether the service responded with an error: see `error.status`, `error.reason` and, for a 422, `error.fields`. */
export function isRefusal(error: unknown): error is Refusal {
  return isDeckhandError(error) && error.status !== undefined;
}

/** The reasons that a procedure can fail with: `ReasonOf<'cards.create'>`. */
export type ReasonOf<Name extends keyof ProcedureReasons> = ProcedureReasons[Name];

/** The error of a failed call of this procedure: `ErrorOf<'cards.create'>`. */
export type ErrorOf<Name extends keyof ProcedureReasons> = DeckhandError & {
  /** The procedure that failed. */
  procedure: Name;
  /** One of the reasons of this procedure; undefined without a response from the service. */
  reason: ReasonOf<Name> | undefined;
};

/** Whether this is the error of a failed call, also one of another copy of this package. */
export function isDeckhandError(error: unknown): error is DeckhandError;
/** Whether this is the error of a failed call of this procedure: `error.reason` is then one of its reasons. */
export function isDeckhandError<Name extends keyof ProcedureReasons>(
  error: unknown,
  procedure: Name,
): error is ErrorOf<Name>;
export function isDeckhandError(error: unknown, procedure?: string): boolean {
  if (typeof error !== 'object' || error === null || !(BRAND in error)) return false;
  return procedure === undefined || (error as { procedure?: unknown }).procedure === procedure;
}
