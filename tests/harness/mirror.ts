import { readFile, writeFile } from 'node:fs/promises';
import type { Client } from '../../client/client.ts';
import type { MirrorRows } from '../../client/events/events.ts';
import { unlessGone } from '../../client/events/fetchRow.ts';
import { NO_ROWS } from '../../client/events/mirrorRows.ts';
import { toCursor } from '../../server/domain/event/feed.ts';

/** A cursor of another database. */
export const lostCursor = () =>
  toCursor({ transaction: '999999999999', id: '7', seconds: Math.floor(Date.now() / 1000) });

/** Replaces the cursor in the file of a mirror. */
export async function loseCursor(file: string): Promise<void> {
  await writeFile(file, (await readFile(file, 'utf8')).replace(/"cursor":"[^"]*"/g, `"cursor":"${lostCursor()}"`));
}

/** The rows of a board as `boards.get` has them, to compare with a mirror: without what depends on the time. */
export async function boardOf(client: Client, id: number): Promise<MirrorRows> {
  const found = await unlessGone(client.boards.get.query({ id }));
  if (!found) return NO_ROWS;
  const { groups, ...board } = found.board;
  return {
    boards: new Map([[id, board]]),
    groups: new Map(groups.map(({ cards, ...group }) => [group.id, group])),
    cards: new Map(groups.flatMap(({ cards }) => cards.map(({ is_overdue, ...card }) => [card.id, card]))),
  };
}
