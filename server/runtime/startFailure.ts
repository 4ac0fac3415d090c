/** Ends the process with exit code 1; its message is printed without a stack. */
export function startFailure(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { name: START_FAILURE });
}

export const isStartFailure = (error: unknown): error is Error =>
  error instanceof Error && error.name === START_FAILURE;

const START_FAILURE = 'StartFailure';
