import { type Failure, isOverload } from '../../shared/errors.ts';
import type { Log } from '../runtime/log.ts';

/** Logs what the caller is not told: the error behind a 500, or the timeout of a busy database. */
export function logFailure(log: Log, error: unknown, { status }: Pick<Failure, 'status'>): void {
  const { cause = error } = error as { cause?: unknown };
  if (status === 500) log.error(cause);
  else if (isOverload(cause)) log.warn(cause, 'The database is busy: a connection or a row lock timed out.');
}
