import type { Client } from '../client.ts';
import type { Procedures } from '../procedures.ts';
import type { InputOf } from './types.ts';

export type BoardState = Partial<InputOf<Procedures['boards']['create']>> & {
  groups?: GroupState<Procedures['groups']['create'], Procedures['cards']['create']>[];
};
export type TemplateState = Partial<InputOf<Procedures['masterBoards']['create']>> & {
  groups?: GroupState<Procedures['masterGroups']['create'], Procedures['masterCards']['create']>[];
};

/** A card is its title, or its fields. */
type GroupState<Group, Card> = Omit<InputOf<Group>, 'board_id'> & {
  cards?: (string | Omit<InputOf<Card>, 'group_id'>)[];
};

/** One call after another, so that groups and cards have the order in which they are given. */
export async function fillBoard(client: Client, { groups = [], ...state }: BoardState & { title: string }) {
  const { board } = await client.boards.create.mutate(state);
  for (const { cards = [], ...fields } of groups) {
    const { group } = await client.groups.create.mutate({ ...fields, board_id: board.id });
    for (const card of cards) await client.cards.create.mutate({ ...fieldsOf(card), group_id: group.id });
  }
  return (await client.boards.get.query({ id: board.id })).board;
}

export async function fillTemplate(client: Client, { groups = [], ...state }: TemplateState & { title: string }) {
  const { board } = await client.masterBoards.create.mutate(state);
  for (const { cards = [], ...fields } of groups) {
    const { group } = await client.masterGroups.create.mutate({ ...fields, board_id: board.id });
    for (const card of cards) await client.masterCards.create.mutate({ ...fieldsOf(card), group_id: group.id });
  }
  return (await client.masterBoards.get.query({ id: board.id })).board;
}

const fieldsOf = <Fields extends object>(card: string | Fields) => (typeof card === 'string' ? { title: card } : card);
