/** @import { Board, Card, Group } from './boardView.js' */
/** @import { Move } from './drag.js' */

/**
 * The board with a card at another place.
 * @param {Board} board
 * @param {Move} move
 */
export function withMove(board, { id, group_id, position }) {
  const card = board.groups.flatMap(({ cards }) => cards).find((one) => one.id === id);
  return card ? withCard(withoutCard(board, id), group_id, card, position) : board;
}

/**
 * @param {Board} board
 * @param {number} groupId
 * @param {Card} card
 * @param {number} position from 1; last if it is higher
 * @returns {Board}
 */
export function withCard(board, groupId, card, position = Number.POSITIVE_INFINITY) {
  const groups = board.groups.map((group) =>
    group.id === groupId ? { ...group, cards: group.cards.toSpliced(position - 1, 0, card) } : group,
  );
  return { ...board, groups };
}

/**
 * @param {Board} board
 * @param {number} id
 * @returns {Board}
 */
export function withoutCard(board, id) {
  const groups = board.groups.map((group) => ({ ...group, cards: group.cards.filter((card) => card.id !== id) }));
  return { ...board, groups };
}

/** The id of the column for cards that are in no group. */
const NO_GROUP = 0;

/**
 * The board with a further column for these cards, which are in no group.
 * @param {Board} board
 * @param {Card[]} cards
 * @returns {Board}
 */
export function withUngrouped(board, cards) {
  if (cards.length === 0) return board;
  const ordered = cards.toSorted((one, other) => one.position - other.position || one.id - other.id);
  const column = /** @type {Group} */ ({ id: NO_GROUP, title: 'In no group', cards: ordered });
  return { ...board, groups: [...board.groups, column] };
}

/** Cards on the board itself. @param {Board} board */
export const countCards = ({ groups }) =>
  groups.reduce((count, { id, cards }) => (id === NO_GROUP ? count : count + cards.length), 0);

/**
 * Whether two boards have the same cards at the same places.
 * @param {Board} one
 * @param {Board} other
 */
export const hasSamePlaces = (one, other) => placesOf(one) === placesOf(other);

/** @param {Board} board */
const placesOf = ({ groups }) => JSON.stringify(groups.map(({ id, cards }) => [id, cards.map((card) => card.id)]));
