import { nearestName } from '../runtime/nearestName.ts';

/** A wrong use of the command line. */
export const misuse = (message: string) => Object.assign(new Error(message), { code: 'ERR_PARSE_ARGS_MISUSE' });

/** Whether it comes from Node's `parseArgs`, or from `misuse`. */
export const isMisuse = (error: unknown): error is Error =>
  String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS');

/** For an error with an exit code of its own, which the help of its command documents. */
export const withExitCode = (error: unknown, exitCode: number) => Object.assign(error as Error, { exitCode });
export const exitCodeOf = (error: unknown) => (error as { exitCode?: number }).exitCode;

/** The name that was probably meant: ` Did you mean boards list?`; empty if none is close. */
export function suggestion(given: string, known: Iterable<string>): string {
  const meant = nearestName(given, known, Math.max(1, Math.floor(given.length / 3)));
  return meant === undefined ? '' : ` Did you mean ${meant}?`;
}
