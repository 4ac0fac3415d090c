import type { Client } from '../../../../client/client.ts';

type Read = Awaited<ReturnType<Client['boards']['get']['query']>>['board'];
export type BoardCard = Read['groups'][number]['cards'][number];
export type Group = Pick<Read['groups'][number], 'id' | 'title' | 'color' | 'cards'> & {
  /** The titles of cards that are being added. */
  adding?: string[];
};
/** `missing`: how many cards of it are not read, since it is too large for one response. */
export type FullBoard = Pick<Read, 'id' | 'project_id' | 'title' | 'description' | 'master_board_id'> & {
  groups: Group[];
  missing: number;
  /** Whether there are more cards in no group than the column shows. */
  hasMoreUngrouped: boolean;
};

/** The column for cards of the project that are in no group. */
export const NO_GROUP = 0;

/** A card at a new place: before another card of the group, or at its end. */
export type Move = { id: number; title: string; group_id: number; before?: number | undefined };

export const cardsOf = (board: FullBoard) => board.groups.flatMap(({ cards }) => cards);

export function withMove(board: FullBoard, { id, group_id, before }: Move): FullBoard {
  const card = cardsOf(board).find((one) => one.id === id);
  return card ? withCard(withoutCard(board, id), group_id, { ...card, group_id: group_id || null }, before) : board;
}

/** The place of a card in its group, from 1, once it is moved. */
export function positionOf(board: FullBoard, { id, group_id, before }: Move): number {
  const others = board.groups.find((group) => group.id === group_id)?.cards.filter((card) => card.id !== id) ?? [];
  const at = others.findIndex((card) => card.id === before);
  return (at < 0 ? others.length : at) + 1;
}

export function withCard(board: FullBoard, groupId: number, card: BoardCard, before?: number): FullBoard {
  return withGroup(board, groupId, ({ cards, ...group }) => {
    const at = cards.findIndex((other) => other.id === before);
    return { ...group, cards: at < 0 ? [...cards, card] : cards.toSpliced(at, 0, card) };
  });
}

/** Groups without the card stay the same objects, so that they are not drawn again. */
export const withoutCard = (board: FullBoard, id: number): FullBoard => ({
  ...board,
  groups: board.groups.map((group) =>
    group.cards.some((card) => card.id === id)
      ? { ...group, cards: group.cards.filter((card) => card.id !== id) }
      : group,
  ),
});

export const withPatch = (board: FullBoard, patch: Partial<BoardCard> & { id: number }): FullBoard => ({
  ...board,
  groups: board.groups.map((group) =>
    group.cards.some(({ id }) => id === patch.id)
      ? { ...group, cards: group.cards.map((card) => (card.id === patch.id ? { ...card, ...patch } : card)) }
      : group,
  ),
});

export const withGroup = (board: FullBoard, id: number, change: (group: Group) => Group): FullBoard => ({
  ...board,
  groups: board.groups.map((group) => (group.id === id ? change(group) : group)),
});

/** Whether two boards have the same cards at the same places. */
export const hasSamePlaces = (one: FullBoard, other: FullBoard) => placesOf(one) === placesOf(other);

const placesOf = ({ groups }: FullBoard) =>
  JSON.stringify(groups.map(({ id, cards }) => [id, cards.map((card) => card.id)]));
