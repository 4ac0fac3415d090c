/** An error that prevents the start and is explained in one line; it is printed without a stack, and the exit code is 1. */
export function startFailure(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { name: START_FAILURE });
}

export const isStartFailure = (error: unknown): error is Error =>
  error instanceof Error && error.name === START_FAILURE;

const START_FAILURE = 'StartFailure';
