import { z } from 'zod';
import {
  Card,
  CardCreate,
  CardDelete,
  CardGet,
  CardList,
  CardMove,
  CardPage,
  CardSnooze,
  CardUpdate,
  CreatedCard,
} from '../../shared/card.ts';
import { createCard, deleteCard, dismissTourCards, getCard, moveCard, snoozeCard, updateCard } from '../domain/card.ts';
import { listCards } from '../domain/cardList.ts';
import { rest } from '../restOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';
import { unchecked } from '../unchecked.ts';

const oneCard = unchecked(z.object({ card: Card }));

export const cardRouter = router({
  create: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/cards/create', {
        status: 201,
        message: 'Card created.',
        summary: 'Create a card',
        description: 'Creates a card in the project, at the end of the group if one is sent.',
        errors: [400, 401, 403, 422, 429, 500],
      }),
    )
    .input(CardCreate)
    .output(unchecked(z.object({ card: CreatedCard })))
    .mutation(({ ctx, input }) => createCard(ctx, input)),

  delete: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/cards/delete', {
        message: 'Card deleted.',
        summary: 'Delete a card',
        description: 'Deletes a card; its comments stay, hidden.',
        bodies: { 403: 'full' },
      }),
    )
    .input(CardDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteCard(ctx, input)),

  get: viewerProcedure
    .input(CardGet)
    .output(oneCard)
    .query(({ ctx, input }) => getCard(ctx, input)),

  list: viewerProcedure
    .input(CardList)
    .output(unchecked(CardPage))
    .query(({ ctx, input }) => listCards(ctx, input)),

  update: memberProcedure
    .input(CardUpdate)
    .output(oneCard)
    .mutation(({ ctx, input }) => updateCard(ctx, input)),

  move: memberProcedure
    .input(CardMove)
    .output(oneCard)
    .mutation(({ ctx, input }) => moveCard(ctx, input)),

  snooze: memberProcedure
    .input(CardSnooze)
    .output(oneCard)
    .mutation(({ ctx, input }) => snoozeCard(ctx, input)),
});

export const tourRouter = router({
  dismissAll: viewerProcedure
    .meta(
      rest('/services/operations/v1/operations/tour/cards/dismiss-all', {
        message: 'Tour cards dismissed.',
        summary: 'Dismiss all tour cards',
        description: 'Dismisses all tour cards of the project for the calling user.',
      }),
    )
    .output(
      z.object({ dismissed_count: z.int().meta({ description: 'Number of newly dismissed cards.', example: 2 }) }),
    )
    .mutation(({ ctx }) => dismissTourCards(ctx)),
});
