import type { Client } from '../client.ts';
import type { ChangeEvent } from './event.ts';
import { readSince, unlessGone } from './fetchRow.ts';

type Listed<Name extends 'boards' | 'groups' | 'cards'> =
  Awaited<ReturnType<Client[Name]['list']['query']>> extends {
    [Rows in Name]: (infer Row)[];
  }
    ? Row
    : never;

/** A mirrored board and what is on it, by id. */
export type MirrorRows = {
  /** The board; none while it is deleted. */
  boards: ReadonlyMap<number, Omit<Listed<'boards'>, 'groups_count' | 'cards_count'>>;
  /** Its groups. */
  groups: ReadonlyMap<number, Listed<'groups'>>;
  /** The cards in these groups, without what depends on the time or on who asks. */
  cards: ReadonlyMap<number, Omit<Listed<'cards'>, 'is_overdue' | 'is_dismissed'>>;
};

export const NO_ROWS: MirrorRows = { boards: new Map(), groups: new Map(), cards: new Map() };

/** What has to be read again. `cards` has the version that each card has at least. */
export type Outdated = {
  isAll: boolean;
  hasBoard: boolean;
  hasGroups: boolean;
  cards: Map<number, number>;
};

export function outdatedBy(events: readonly ChangeEvent[], boardId: number): Outdated {
  const outdated: Outdated = { isAll: false, hasBoard: false, hasGroups: false, cards: new Map() };
  for (const { type, subject_id, data } of events) {
    const { ids = [], count = 0, board_id, version = 0 } = data;
    const [noun, verb] = type.split('.');
    const isUnnamed = ids.length === 0 && count > 0;
    if (noun === 'board') {
      const isOwn = subject_id === boardId;
      outdated.isAll ||= isOwn && (verb === 'deleted' || verb === 'restored');
      outdated.hasBoard ||= isOwn || isUnnamed || ids.includes(boardId);
    } else if (noun === 'group') {
      // The cards of a restored group come back without events of their own.
      outdated.isAll ||= verb === 'restored' && board_id === boardId;
      outdated.hasGroups = true;
    } else if (noun !== 'comment' && noun !== 'tour') {
      // A template changes rows of any kind.
      outdated.isAll ||= noun === 'template' || isUnnamed;
      const note = (id: number, least: number) => outdated.cards.set(id, Math.max(least, outdated.cards.get(id) ?? 0));
      // Ids of other rows, such as tags, do no harm: a card with that id is only read again.
      for (const id of ids) note(id, 0);
      if (noun === 'card' && subject_id !== null) note(subject_id, version);
    }
  }
  return outdated;
}

const LARGEST_PAGE = 200;

/** Every row of a board, page by page: also of a board that is too large for `boards.get`. */
export async function readBoard(client: Client, boardId: number): Promise<MirrorRows> {
  const boards = await readBoards(client, boardId);
  const which = { board_id: boardId, include_dismissed: true, limit: LARGEST_PAGE };
  const listed = boards.size > 0 && (await byId(client.cards.list.each(which)));
  if (!listed) return NO_ROWS;
  const cards = new Map([...listed].map(([id, card]) => [id, withoutCaller(card)]));
  return withGroups(client, boardId, { ...NO_ROWS, boards, cards });
}

/** Reads again what has changed. */
export async function readChanged(
  client: Client,
  boardId: number,
  rows: MirrorRows,
  { hasBoard, hasGroups, cards: changed }: Outdated,
): Promise<MirrorRows> {
  const boards = hasBoard ? await readBoards(client, boardId) : rows.boards;
  const cards = new Map(rows.cards);
  let hasUnknownGroup = false;
  const read = async ([id, least]: [number, number]) => {
    // A 404 is believed at once: cards go with their group, without events of their own.
    const found = await readSince(() => client.cards.get.query({ id }), least, true);
    if (!found) return cards.delete(id);
    const { card } = found;
    hasUnknownGroup ||= card.group_id !== null && !rows.groups.has(card.group_id);
    return cards.set(id, withoutCaller(card));
  };
  await Promise.all([...changed].map(read));
  const next = { ...rows, boards, cards };
  if (boards.size === 0) return NO_ROWS;
  return hasGroups || hasUnknownGroup ? withGroups(client, boardId, next) : onBoard(next);
}

/** From the list of boards: `boards.get` would send all cards. */
async function readBoards(client: Client, boardId: number): Promise<MirrorRows['boards']> {
  const { boards } = await client.boards.list.query();
  const own = boards.filter(({ id }) => id === boardId);
  return new Map(own.map(({ groups_count, cards_count, ...board }) => [board.id, board]));
}

/** Reads the groups after the cards: a card may be in a group that was created just now. */
async function withGroups(client: Client, boardId: number, rows: MirrorRows): Promise<MirrorRows> {
  const groups = await byId(client.groups.list.each({ board_id: boardId, limit: LARGEST_PAGE }));
  return groups ? onBoard({ ...rows, groups }) : NO_ROWS;
}

/** The rows of a list; undefined if the board is deleted meanwhile. */
const byId = <Row extends { id: number }>(list: AsyncIterable<Row>): Promise<Map<number, Row> | undefined> =>
  unlessGone(
    (async () => {
      const rows = new Map<number, Row>();
      for await (const row of list) rows.set(row.id, row);
      return rows;
    })(),
  );

/** Without cards that have left the board, or whose group was deleted. */
const onBoard = (rows: MirrorRows): MirrorRows => ({
  ...rows,
  cards: new Map([...rows.cards].filter(([, { group_id }]) => group_id !== null && rows.groups.has(group_id))),
});

const withoutCaller = ({ is_overdue, is_dismissed, ...card }: Listed<'cards'>) => card;
