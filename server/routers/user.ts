import { Authenticate, AuthenticatedUser } from '../../shared/user.ts';
import { authenticate } from '../domain/user.ts';
import { rest } from '../restOperation.ts';
import { anyoneProcedure, router } from '../trpc.ts';

export const authRouter = router({
  authenticate: anyoneProcedure
    .meta(
      rest('/v1/authenticate', {
        message: 'Signed in.',
        summary: 'Sign in',
        description:
          'Checks e-mail and password and returns the Bearer token of later calls, with what the user may do.',
        isPublic: true,
        errors: [400, 401, 422, 429, 500],
        bodies: { 400: 'bare', 500: 'bare' },
        envelope: { errors: [] },
      }),
    )
    .input(Authenticate)
    .output(AuthenticatedUser)
    .mutation(({ ctx, input }) => authenticate(ctx, input)),
});
