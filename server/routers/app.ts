import { router } from '../trpc.ts';
import { boardRouter } from './board.ts';
import { cardRouter } from './card.ts';
import { authRouter } from './user.ts';

/** Every procedure of the service; the client's types, the REST paths and the OpenAPI document all come from here. */
export const appRouter = router({
  auth: authRouter,
  boards: boardRouter,
  cards: cardRouter,
});

export type AppRouter = typeof appRouter;
