import { toFailure } from '../../../shared/errors.ts';
import type { Context } from '../access/context.ts';

/** Does something with the secret of a link. Wrong ones count as failed attempts of the network; they are not logged. */
export async function withLink<Result>(
  { services: { attemptLimit }, origin: { address }, log }: Context,
  secret: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const attempt = { email: secret, address };
  await attemptLimit.mustBeAllowed(attempt);
  try {
    return await work();
  } catch (error) {
    if (toFailure(error).reason === 'link_invalid') {
      log.warn({ event: 'authentication_failed', reason: 'wrong link', address }, 'authentication failed');
      await attemptLimit.countFailure(attempt);
    }
    throw error;
  }
}
