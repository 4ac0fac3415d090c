import { z } from 'zod';
import {
  Card,
  CardCreate,
  CardCreateMany,
  CardDelete,
  CardGet,
  CardList,
  CardMove,
  CardPage,
  CardResults,
  CardSnooze,
  CardUpdate,
  CardUpdateMany,
  CreatedCard,
  ListedCard,
} from '../../../shared/card.ts';
import { count, rowVersion } from '../../../shared/fields.ts';
import { COUNTS_AS, callsFor } from '../../../shared/limits.ts';
import { restoredOf, restoreOf } from '../../../shared/trash.ts';
import { createCard, deleteCard, getCard, restoreCard, snoozeCard, updateCard } from '../../domain/board/card.ts';
import { createCards } from '../../domain/board/cardCreateMany.ts';
import { listCards } from '../../domain/board/cardList.ts';
import { moveCard } from '../../domain/board/cardMove.ts';
import { sanitiseCopies, updateCards } from '../../domain/board/cardUpdateMany.ts';
import { sanitiseDescription } from '../../domain/board/description.ts';
import { dismissTourCards, restartTours } from '../../domain/board/tour.ts';
import { rest, specified } from '../restOperation.ts';
import { restoring } from '../restoreOperation.ts';
import { memberProcedure, router, viewerProcedure } from '../trpc.ts';

const oneCard = z.object({ card: Card, version: rowVersion });

/** What a call with many cards counts as. */
const countsAs = ({ cards }: { cards: readonly unknown[] }) => callsFor(cards.length);
const MANY = `In the rate limit, the call ${COUNTS_AS}.`;

export const cardRouter = router({
  create: specified(memberProcedure, '/services/operations/v1/operations/cards/create', {
    status: 201,
    message: 'Card created.',
    summary: 'Create a card',
    description: 'Creates a card in the project, at the end of the group if one is sent.',
    errors: [400, 401, 403, 422, 429, 500],
  })
    .meta({ events: ['card.created'], tool: true, confirms: true, reasons: ['unknown_reference'] })
    .input(CardCreate)
    .output(z.object({ card: CreatedCard, version: rowVersion }))
    .mutation(({ ctx, input }) => createCard(ctx, input)),

  createMany: rest(memberProcedure, '/services/operations/v1/operations/cards/create-many', {
    message: 'Cards created.',
    summary: 'Create many cards',
    description: `Creates up to 1,000 cards, each as \`cards.create\` does, in the order in which they are sent. ${MANY}`,
    namesRow: false,
  })
    .meta({ events: ['card.created'], countsAs, reasons: ['unknown_reference'] })
    .input(CardCreateMany)
    .output(CardResults)
    .mutation(({ ctx, input }) => createCards(ctx, input)),

  delete: specified(memberProcedure, '/services/operations/v1/operations/cards/delete', {
    message: 'Card deleted.',
    summary: 'Delete a card',
    description: 'Deletes a card; its comments stay, hidden.',
    bodies: { 403: 'full' },
  })
    .meta({ isDestructive: true, events: ['card.deleted'], tool: true })
    .input(CardDelete)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteCard(ctx, input)),

  restore: restoring(memberProcedure, '/services/operations/v1/operations/cards/restore', 'card', {
    events: ['card.restored'],
  })
    .meta({ reasons: ['parent_deleted', 'already_exists'] })
    .input(restoreOf(16))
    .output(restoredOf('card', Card))
    .mutation(({ ctx, input }) => restoreCard(ctx, input)),

  get: rest(viewerProcedure, '/services/operations/v1/operations/cards/get', {
    message: 'The card.',
    summary: 'Get a card',
    description: 'One card, and whether the caller dismissed it.',
  })
    .meta({ tool: true })
    .input(CardGet)
    .output(z.object({ card: ListedCard, version: rowVersion }))
    .query(({ ctx, input }) => getCard(ctx, input)),

  list: rest(viewerProcedure, '/services/operations/v1/operations/cards/list', {
    message: 'Cards of the project.',
    summary: 'List cards',
    description:
      'The cards that match all filters, in order, page by page: of the project of the board, group or tag that is named, else of the project of the call.',
    namesRow: false,
  })
    .meta({ tool: true })
    .input(CardList)
    .output(CardPage)
    .query(({ ctx, input }) => listCards(ctx, input)),

  update: rest(memberProcedure, '/services/operations/v1/operations/cards/update', {
    message: 'Card updated.',
    summary: 'Update a card',
    description: 'Changes the sent fields. `cards.move` changes the group and the position in it.',
  })
    .meta({ prepare: sanitiseDescription, events: ['card.updated'], tool: true, reasons: ['unknown_reference'] })
    .input(CardUpdate)
    .output(oneCard)
    .mutation(({ ctx, input }) => updateCard(ctx, input)),

  updateMany: rest(memberProcedure, '/services/operations/v1/operations/cards/update-many', {
    message: 'Cards updated.',
    summary: 'Update many cards',
    description: `Changes the sent fields of up to 1,000 cards, each as \`cards.update\` does. ${MANY}`,
  })
    .meta({
      prepare: sanitiseCopies,
      events: ['card.updated'],
      countsAs,
      reasons: ['unknown_reference', 'row_changed'],
    })
    .input(CardUpdateMany)
    .output(CardResults)
    .mutation(({ ctx, input }) => updateCards(ctx, input)),

  move: rest(memberProcedure, '/services/operations/v1/operations/cards/move', {
    message: 'Card moved.',
    summary: 'Move a card',
    description:
      'Moves a card to a position in a group of its project, or outside any. Up to 200 cards there are then numbered from 1. Among more cards, few get another `position`, which then only tells their order.',
  })
    .meta({ events: ['card.moved'], tool: true, reasons: ['unknown_reference'] })
    .input(CardMove)
    .output(oneCard)
    .mutation(({ ctx, input }) => moveCard(ctx, input)),

  snooze: rest(memberProcedure, '/services/operations/v1/operations/cards/snooze', {
    message: 'Snoozing changed.',
    summary: 'Snooze a card',
    description: 'Snoozes a card until a time; without one, it ends snoozing.',
  })
    .meta({ events: ['card.updated'] })
    .input(CardSnooze)
    .output(oneCard)
    .mutation(({ ctx, input }) => snoozeCard(ctx, input)),
});

export const tourRouter = router({
  dismissAll: specified(viewerProcedure, '/services/operations/v1/operations/tour/cards/dismiss-all', {
    message: 'Tour cards dismissed.',
    summary: 'Dismiss all tour cards',
    description: 'Dismisses all tour cards for the calling user, in all of their projects, or in the selected one.',
    errors: [400, 401, 403, 429, 500],
  })
    .meta({ events: ['tour.dismissed'] })
    .output(z.object({ dismissed_count: count.meta({ description: 'Number of newly dismissed cards.', example: 2 }) }))
    .mutation(({ ctx }) => dismissTourCards(ctx)),

  restart: rest(viewerProcedure, '/services/operations/v1/operations/tour/restart', {
    message: 'Tours restarted.',
    summary: 'Restart tours',
    description:
      'Shows all dismissed tour cards to the calling user again, in all of their projects, or in the selected one.',
  })
    .meta({ events: ['tour.restarted'] })
    .output(
      z.object({
        restored_count: count.meta({ description: 'Number of cards that are shown again.', example: 2 }),
      }),
    )
    .mutation(({ ctx }) => restartTours(ctx)),
});
