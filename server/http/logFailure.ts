import { type Failure, isOverload } from '../errors.ts';
import type { Log } from '../log.ts';

/** Tells the operator what the caller is not told: why it is our fault, or what of the database was not free in time. */
export function logFailure(log: Log, error: unknown, { status }: Pick<Failure, 'status'>): void {
  const { cause = error } = error as { cause?: unknown };
  if (status === 500) log.error(cause);
  else if (isOverload(cause)) log.warn(cause, 'The database is busy: no connection, or a locked row, in time.');
}
