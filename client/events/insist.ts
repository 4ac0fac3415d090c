import { isDeckhandError } from '../errorChecks.ts';
import { isTemporary, millisecondsBefore } from '../retry.ts';
import { pause } from '../timeOut.ts';

const MOST_DOUBLINGS = 8;
/** However long the service, or a gateway in front of it, says to wait. */
const LONGEST_PAUSE_MILLISECONDS = 3_600_000;

/**
 * Repeats work with growing pauses of up to a minute, or longer if the service says so. Work that goes on for long calls `succeeded`
 * now and then, so that the next pause is short again. Throws errors that a repeat can't help, and when the signal is aborted.
 */
export async function insist<Result>(
  work: (succeeded: () => void) => Promise<Result>,
  signal: AbortSignal,
  mayHelp = (error: unknown) => isDeckhandError(error) && isTemporary(error),
): Promise<Result> {
  let failures = 0;
  const succeeded = () => {
    failures = 0;
  };
  for (;;) {
    signal.throwIfAborted();
    try {
      return await work(succeeded);
    } catch (error) {
      signal.throwIfAborted();
      if (!mayHelp(error)) throw error;
      const waited = isDeckhandError(error) ? [error] : [];
      const milliseconds = millisecondsBefore(Math.min(failures++, MOST_DOUBLINGS), waited);
      await pause(Math.min(milliseconds, LONGEST_PAUSE_MILLISECONDS), signal);
    }
  }
}

/** Work that ends with the signal, without an error. */
export async function untilSignal(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
