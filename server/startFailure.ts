/** A reason not to start that one line explains; the program prints that line, without a stack, and ends with 1. */
export function startFailure(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { name: START_FAILURE });
}

export const isStartFailure = (error: unknown): error is Error =>
  error instanceof Error && error.name === START_FAILURE;

const START_FAILURE = 'StartFailure';
