import type { Context } from '../access/context.ts';

type AttemptContext = Pick<Context, 'attemptLimit' | 'address' | 'log'>;
type FailureReason = 'wrong password' | 'unknown account' | 'wrong code' | 'blocked';

/** Throws a 429 after too many failures; tells whether the network has failed lately. */
export async function mustBeAllowed(context: AttemptContext, email: string): Promise<{ hasFailed: boolean }> {
  const { attemptLimit, address } = context;
  return attemptLimit.mustBeAllowed({ email, address }).catch((error) => {
    logFailure(context, email, 'blocked');
    throw error;
  });
}

/** Counts and logs a failed attempt. */
export async function countFailure(context: AttemptContext, email: string, reason: FailureReason): Promise<void> {
  const { attemptLimit, address } = context;
  logFailure(context, email, reason);
  await attemptLimit.countFailure({ email, address });
}

const LONGEST_EMAIL = 320;

/** For operators who block addresses: the caller's input comes last and is escaped, so it can't fake the rest of the line. */
export function logFailure({ log, address }: AttemptContext, email: string, reason: FailureReason): void {
  const account = email.slice(0, LONGEST_EMAIL).replaceAll(/[\p{C}"\\]/gu, '?');
  log.warn({ event: 'authentication_failed', reason, address, account }, 'authentication failed');
}
