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
  ListedCard,
} from '../../../shared/card.ts';
import { count } from '../../../shared/fields.ts';
import { createCard, deleteCard, getCard, snoozeCard, updateCard } from '../../domain/board/card.ts';
import { listCards } from '../../domain/board/cardList.ts';
import { moveCard } from '../../domain/board/cardMove.ts';
import { sanitiseDescription } from '../../domain/board/description.ts';
import { dismissTourCards, restartTours } from '../../domain/board/tour.ts';
import { rest, specified } from '../restOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';
import { unchecked } from '../unchecked.ts';

const oneCard = unchecked(z.object({ card: Card }));

export const cardRouter = router({
  create: memberProcedure
    .meta(
      specified('/services/operations/v1/operations/cards/create', {
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
      specified('/services/operations/v1/operations/cards/delete', {
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
    .meta(
      rest('/services/operations/v1/operations/cards/get', {
        message: 'The card.',
        summary: 'Get a card',
        description: 'One card, and whether the caller dismissed it.',
      }),
    )
    .input(CardGet)
    .output(unchecked(z.object({ card: ListedCard })))
    .query(({ ctx, input }) => getCard(ctx, input)),

  list: viewerProcedure
    .meta(
      rest('/services/operations/v1/operations/cards/list', {
        message: 'Cards of the project.',
        summary: 'List cards',
        description:
          'The cards that match all filters, in order, page by page: of the project of the group or tag that is named, else of the project of the call.',
        namesRow: false,
      }),
    )
    .input(CardList)
    .output(unchecked(CardPage))
    .query(({ ctx, input }) => listCards(ctx, input)),

  update: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/cards/update', {
        message: 'Card updated.',
        summary: 'Update a card',
        description: 'Changes the sent fields. `cards.move` changes the group and the position in it.',
      }),
    )
    .meta({ prepare: sanitiseDescription })
    .input(CardUpdate)
    .output(oneCard)
    .mutation(({ ctx, input }) => updateCard(ctx, input)),

  move: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/cards/move', {
        message: 'Card moved.',
        summary: 'Move a card',
        description:
          'Moves a card to a position in a group of its project, or outside any. Up to 200 cards there are then numbered from 1. Among more cards, few get another `position`, which then only tells their order.',
      }),
    )
    .input(CardMove)
    .output(oneCard)
    .mutation(({ ctx, input }) => moveCard(ctx, input)),

  snooze: memberProcedure
    .meta(
      rest('/services/operations/v1/operations/cards/snooze', {
        message: 'Snoozing changed.',
        summary: 'Snooze a card',
        description: 'Snoozes a card until a time; without one, it ends snoozing.',
      }),
    )
    .input(CardSnooze)
    .output(oneCard)
    .mutation(({ ctx, input }) => snoozeCard(ctx, input)),
});

export const tourRouter = router({
  dismissAll: viewerProcedure
    .meta(
      specified('/services/operations/v1/operations/tour/cards/dismiss-all', {
        message: 'Tour cards dismissed.',
        summary: 'Dismiss all tour cards',
        description: 'Dismisses all tour cards for the calling user, in all of their projects, or in the selected one.',
        errors: [400, 401, 403, 429, 500],
      }),
    )
    .output(z.object({ dismissed_count: count.meta({ description: 'Number of newly dismissed cards.', example: 2 }) }))
    .mutation(({ ctx }) => dismissTourCards(ctx)),

  restart: viewerProcedure
    .meta(
      rest('/services/operations/v1/operations/tour/restart', {
        message: 'Tours restarted.',
        summary: 'Restart tours',
        description:
          'Shows all dismissed tour cards to the calling user again, in all of their projects, or in the selected one.',
        namesRow: false,
      }),
    )
    .output(
      z.object({
        restored_count: count.meta({ description: 'Number of cards that are shown again.', example: 2 }),
      }),
    )
    .mutation(({ ctx }) => restartTours(ctx)),
});
