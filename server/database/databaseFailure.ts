import { startFailure } from '../runtime/startFailure.ts';

/** An error that PostgreSQL reported as one line for an operator; other errors unchanged. */
export function databaseFailure(error: unknown): unknown {
  const { code = '', severity, message } = error as { code?: string; severity?: string; message: string };
  if (severity === undefined) return error;
  return startFailure(`The database refused a statement: ${message} (${code}).${WHAT_TO_DO[code] ?? ''}`, error);
}

const OUTDATED =
  ' The tables are missing or those of another version: bring them up to date with npx deckhand migrate.';
const DAMAGED =
  ' Files of the database are damaged or missing: restore a backup into a new database or directory (docs/data.md).';
/** By the code of a missing table or column, and of damaged files. */
const WHAT_TO_DO: Record<string, string> = {
  '42P01': OUTDATED,
  '42703': OUTDATED,
  '58P01': DAMAGED,
  XX001: DAMAGED,
  XX002: DAMAGED,
};
