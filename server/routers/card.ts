import { z } from 'zod';
import { CardCreate, CreatedCard } from '../../shared/card.ts';
import { createCard } from '../domain/card.ts';
import { rest } from '../restOperation.ts';
import { memberProcedure, router } from '../trpc.ts';

export const cardRouter = router({
  create: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/cards/create', {
        status: 201,
        message: 'Card created.',
        summary: 'Create a card',
        description: 'Creates a card in the project, at the end of the group if one is named.',
        errors: [400, 401, 403, 422, 429, 500],
      }),
    )
    .input(CardCreate)
    .output(z.object({ card: CreatedCard }))
    .mutation(({ ctx, input }) => createCard(ctx, input)),
});
