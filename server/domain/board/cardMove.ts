import { type RawBuilder, sql } from 'kysely';
import type { CardMove } from '../../../shared/card.ts';
import type { Placement } from '../../../shared/fields.ts';
import { LARGEST_INTEGER, SMALLEST_INTEGER } from '../../../shared/limits.ts';
import { lockProject } from '../../database/projectLock.ts';
import { type Db, live, query, transact } from '../../database/query.ts';
import { withVersion } from '../../database/version.ts';
import type { ProjectContext } from '../access/context.ts';
import { furtherRows } from '../event/event.ts';
import { CARD_COLUMNS } from './card.ts';
import { checkReferences } from './cardReference.ts';
import { changeRow, findRow } from './row.ts';
import { dismissedCards } from './tour.ts';

/** A group of up to this many cards is numbered from 1 by each move. In a larger one, only few cards get another position. */
export const MOST_NUMBERED = 200;

/** The gap that a move leaves at the ends of a large group, and between all of its cards if it runs out of gaps. */
const GAP = 1000;

/**
 * Moves a card to a position in a group or outside any. The position counts the cards that the caller sees, without the tour
 * cards that they dismissed.
 */
export async function moveCard(context: ProjectContext, { id, group_id, position, if_version }: CardMove) {
  const { project } = await findRow(context, 'cards', id);
  const isThere =
    group_id === null ? sql`c.project_id = ${project.id} and c.group_id is null` : sql`c.group_id = ${group_id}`;
  const others = sql`from cards c where ${isThere} and c.id <> ${id} and ${live('c')}`;

  return transact(context.db, async (db) => {
    await lockProject(db, project.id);
    await checkReferences({ ...context, db }, project, { group_id });

    const next = position == null ? undefined : await nthSeen(db, others, position, sql`${context.caller.id}`);
    const place = async () => placeBetween(id, await neighboursOf(db, others, next));
    let placed = await place();
    const spreadOut = placed ? [] : await spread(db, others);
    placed ??= (await place()) ?? [];
    const own = placed.find((card) => card.id === id);
    const moved = placed.filter((other) => other !== own);

    const changes = { group_id, position: own?.position };
    const touched = furtherRows([...new Set([...spreadOut, ...moved.map((other) => other.id)])]);
    const event = { type: 'card.moved', data: { group_id, ...touched } } as const;
    const card = await changeRow({ ...context, db }, 'cards', id, changes, CARD_COLUMNS, { event, if_version });
    if (moved.length > 0) await writePositions(db, moved);
    return withVersion('card', card);
  });
}

/** The card at a position, from 1. */
async function nthSeen(db: Db, others: RawBuilder<unknown>, position: number, userId: RawBuilder<unknown>) {
  const [card] = await query(
    db,
    sql<{ id: number }>`
      select c.id ${others} and c.id not in (${dismissedCards(userId)}) order by c.position, c.id offset ${position - 1} limit 1`,
  );
  return card?.id;
}

/** The cards before a place, and those behind it: nearest first, at most `MOST_NUMBERED` each. */
export type Neighbours = { before: Placement[]; behind: Placement[] };

/** The neighbours of the place in front of the card `next`, or of the end. */
async function neighboursOf(db: Db, others: RawBuilder<unknown>, next: number | undefined): Promise<Neighbours> {
  const read = (cards: RawBuilder<unknown>) =>
    query(db, sql<Placement>`select c.id, c.position ${others} ${cards} limit ${sql.lit(MOST_NUMBERED)}`);
  const backwards = sql`order by c.position desc, c.id desc`;
  if (next === undefined) return { before: await read(backwards), behind: [] };
  const place = sql`(select position, id from cards where id = ${next})`;
  return {
    before: await read(sql`and (c.position, c.id) < ${place} ${backwards}`),
    behind: await read(sql`and (c.position, c.id) >= ${place} order by c.position, c.id`),
  };
}

/**
 * Puts a card between its neighbours, and returns all cards with a new position; undefined if there is no gap nearby. The order
 * is by position and id, so two cards can share a position if their ids are in order.
 */
export function placeBetween(id: number, { before, behind }: Neighbours): Placement[] | undefined {
  if (before.length + behind.length < MOST_NUMBERED) return number([...before.toReversed(), { id }, ...behind]);

  const last = before[0] ?? START;
  const next = behind[0] ?? END;
  const middle = Math.floor((last.position + next.position) / 2);
  if (middle > last.position) {
    if (next === END) return [{ id, position: Math.min(last.position + GAP, middle) }];
    return [{ id, position: last === START ? Math.max(next.position - GAP, middle) : middle }];
  }
  return [push(id, last, behind, 1), push(id, next, before, -1)]
    .filter((moved) => moved !== undefined)
    .sort((one, other) => one.length - other.length)[0];
}

/** The places beside the smallest and the largest position, which no card shares. */
const START = { id: Number.POSITIVE_INFINITY, position: SMALLEST_INTEGER - 1 };
const END = { id: Number.NEGATIVE_INFINITY, position: LARGEST_INTEGER + 1 };

const number = (cards: { id: number; position?: number }[]): Placement[] =>
  cards.flatMap(({ id, position }, at) => (position === at + 1 ? [] : { id, position: at + 1 }));

/** Puts a card right after `last` and moves those that follow out of its way; undefined if too many would have to move. */
function push(id: number, last: Placement, following: Placement[], direction: 1 | -1): Placement[] | undefined {
  const moved: Placement[] = [];
  let previous = last;
  for (const card of [{ id, position: -direction * Number.POSITIVE_INFINITY }, ...following]) {
    const isAfter = (card.position - previous.position || card.id - previous.id) * direction > 0;
    if (isAfter) return moved;
    const isSharing = (card.id - previous.id) * direction > 0;
    previous = { id: card.id, position: previous.position + (isSharing ? 0 : direction) };
    if (previous.position > LARGEST_INTEGER || previous.position < SMALLEST_INTEGER) return undefined;
    moved.push(previous);
  }
  return following.length < MOST_NUMBERED ? moved : undefined;
}

/**
 * Leaves a gap behind every card, and returns their ids. Rare: each of the nearest cards is in the way, and older than the one
 * before it.
 */
async function spread(db: Db, others: RawBuilder<unknown>): Promise<number[]> {
  const moved = await query(
    db,
    sql<{ id: number }>`
      update cards set position = least(spread.place * ${sql.lit(GAP)}, ${sql.lit(LARGEST_INTEGER)})
      from (select c.id, row_number() over (order by c.position, c.id) as place ${others}) as spread
      where cards.id = spread.id returning cards.id`,
  );
  return moved.map(({ id }) => id);
}

async function writePositions(db: Db, placements: Placement[]): Promise<void> {
  await query(
    db,
    sql`
      update cards set position = placed.position
      from jsonb_to_recordset(${JSON.stringify(placements)}::jsonb) as placed (id int, position int)
      where cards.id = placed.id`,
  );
}
