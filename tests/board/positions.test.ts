import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { MOST_NUMBERED, type Neighbours, placeBetween } from '../../server/domain/board/cardMove.ts';
import { makeWay } from '../../server/domain/board/position.ts';
import type { Placement } from '../../shared/fields.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenTag,
  givenWorld,
  NOWHERE,
  testDb,
} from '../harness/world.ts';

const LARGEST = 2_147_483_647;

/** The live rows of a place in order, as `title position`. */
async function orderOf(table: string, where: ReturnType<typeof sql>): Promise<string[]> {
  const title = sql.ref(table === 'tags' ? 'name' : 'title');
  const rows = await query(
    await testDb(),
    sql<{ title: string; position: number }>`select ${title} as title, position from ${sql.table(table)}
      where ${where} and deleted_at is null order by position, id`,
  );
  return rows.map(({ title, position }) => `${title} ${position}`);
}

/** A board with groups A, B and C at 1, 2 and 3, and more. */
async function givenGroups(...more: [string, number][]) {
  const world = await givenWorld();
  const board = await givenBoard(world.project);
  const make = (title: string, position: number) => givenGroup(world.project, board, { title, position });
  const groups = { a: await make('A', 1), b: await make('B', 2), c: await make('C', 3) };
  for (const [title, position] of more) await make(title, position);
  const { groups: calls } = world.asMember.rpc;
  return { ...world, board, ...groups, calls, order: () => orderOf('groups', sql`board_id = ${board}`) };
}

describe('a position that is sent', () => {
  it('is the place where a group lands; the groups there move behind it, in their order', async () => {
    const { calls, c, order } = await givenGroups();

    const { group } = await calls.update.mutate({ id: c, position: 1, title: 'C first' });

    expect(group).toMatchObject({ position: 1, title: 'C first' });
    expect(await order()).toEqual(['C first 1', 'A 2', 'B 3']);
  });

  it('moves only the groups whose position is taken, and keeps the order of equal ones', async () => {
    const { calls, a, c, order } = await givenGroups(['D', 9], ['E', 1]);

    await calls.update.mutate({ id: a, position: 3 });
    expect(await order()).toEqual(['E 1', 'B 2', 'A 3', 'C 4', 'D 9']);
    await calls.reorder.mutate({ groups: [{ id: c, position: 1 }] });
    expect(await order()).toEqual(['C 1', 'E 2', 'B 3', 'A 4', 'D 9']);
  });

  it('of a partial reorder is taken exactly, and a complete one stays as it was sent', async () => {
    const { calls, a, b, c, order } = await givenGroups();
    const reorder = (...placed: [id: number, position: number][]) =>
      calls.reorder.mutate({ groups: placed.map(([id, position]) => ({ id, position })) });

    await reorder([c, 1], [b, 3]);
    expect(await order()).toEqual(['C 1', 'A 2', 'B 3']);
    await reorder([a, 7], [b, 7], [c, -1]);
    expect(await order()).toEqual(['C -1', 'A 7', 'B 7']);
  });

  it('also for a new group, which is the last one without it, and a deleted one is not in the way', async () => {
    const { calls, board: board_id, project, order } = await givenGroups();
    await givenGroup(project, board_id, { position: 0, deleted_at: new Date() });

    for (const placed of [{ title: 'D', position: 2 }, { title: 'E', position: 0 }, { title: 'F' }])
      await calls.create.mutate({ board_id, ...placed });

    expect(await order()).toEqual(['E 0', 'A 1', 'D 2', 'B 3', 'C 4', 'F 5']);
  });

  it('does not leave the range of integers', async () => {
    const { calls, a, b, order } = await givenGroups();

    for (const id of [a, b]) await calls.update.mutate({ id, position: LARGEST });

    expect(await order()).toEqual(['C 3', `A ${LARGEST}`, `B ${LARGEST}`]);
  });
});

describe('the same rule', () => {
  it('holds for boards', async () => {
    const { asMember, project } = await givenWorld();
    const { boards } = asMember.rpc;
    const a = await givenBoard(project, { title: 'A', position: 1 });

    const { board: b } = await boards.create.mutate({ title: 'B' });
    await boards.create.mutate({ title: 'C', position: 1 });
    await boards.update.mutate({ id: b.id, position: 1 });
    await boards.reorder.mutate({ boards: [{ id: a, position: 2 }] });

    expect(b.position).toBe(2);
    expect(await orderOf('boards', sql`project_id = ${project.id}`)).toEqual(['B 1', 'A 2', 'C 3']);
  });

  it('holds for tags, without deleted ones', async () => {
    const { asMember, project } = await givenWorld();
    const { tags } = asMember.rpc;
    const a = await givenTag(project, { name: 'A', position: 1 });
    await givenTag(project, { position: 9, deleted_at: new Date() });

    const { tag } = await tags.create.mutate({ name: 'B', position: 1 });
    await tags.create.mutate({ name: 'C' });
    await tags.update.mutate({ id: a, position: 1 });

    expect(tag.position).toBe(1);
    expect(await orderOf('tags', sql`project_id = ${project.id}`)).toEqual(['A 1', 'B 2', 'C 3']);
  });

  it('holds for templates: groups within their board, cards within their group, and boards', async () => {
    const { masterBoards, masterGroups, masterCards } = (await givenWorld()).asSuperadmin.rpc;
    const first = { title: 'A', position: 1 };
    const second = { title: 'B', position: 2, is_master: true };
    const { board, group } = await givenMasterBoard({ group: first, card: first });
    const otherGroup = await givenGroup(NOWHERE, board, second);
    const otherCard = await givenCard(NOWHERE, { group_id: group, ...second });

    await masterGroups.reorder.mutate({ board_id: board, groups: [{ id: otherGroup, position: 1 }] });
    await masterCards.reorder.mutate({ group_id: group, cards: [{ id: otherCard, position: 1 }] });
    const { board: taken } = await masterBoards.update.mutate({ id: board, position: 7 });
    const { board: created } = await masterBoards.create.mutate({ title: 'New', position: 7 });

    expect(await orderOf('groups', sql`board_id = ${board}`)).toEqual(['B 1', 'A 2']);
    expect(await orderOf('cards', sql`group_id = ${group}`)).toEqual(['B 1', 'A 2']);
    expect([taken.position, created.position]).toEqual([7, 7]);
    expect((await masterBoards.get.query({ id: board })).board.position).toBeGreaterThan(7);
  });
});

describe('makeWay', () => {
  const rows = (...positions: number[]) => positions.map((position, id) => ({ id, position }));

  it.each([
    { name: 'nothing is taken', of: rows(1, 2, 2), taken: [], moved: [] },
    { name: 'a gap takes up the move', of: rows(1, 2, 4), taken: [1], moved: [2, 3] },
    { name: 'taken positions are skipped', of: rows(1, 2), taken: [1, 2, 4], moved: [3, 5] },
    { name: 'equal rows that move get different positions', of: rows(1, 1, 5), taken: [1], moved: [2, 3] },
  ])('$name', ({ of, taken, moved }) => {
    expect(makeWay(of, new Set(taken)).map(({ position }) => position)).toEqual(moved);
  });

  it('after many moved rows, the next ones share a position if their ids are in order', () => {
    const moved = (...ids: number[]) =>
      makeWay(
        ids.map((id, at) => ({ id, position: at + 1 })),
        new Set([1]),
        2,
      );

    expect(moved(1, 2, 3, 4, 5).map(({ position }) => position)).toEqual([2, 3]);
    expect(moved(1, 9, 8, 4, 5).map(({ position }) => position)).toEqual([2, 3, 4, 5]);
  });
});

describe('placeBetween, in a large group', () => {
  const inOrder = (one: Placement, other: Placement) => one.position - other.position || one.id - other.id;
  const around = (cards: Placement[], place: number): Neighbours => ({
    before: cards.slice(0, place).toReversed().slice(0, MOST_NUMBERED),
    behind: cards.slice(place, place + MOST_NUMBERED),
  });
  /** Cards with these positions; the ids count up or down. */
  const cards = (positionOf: (at: number) => number, idOf = (at: number) => at + 1, length = 1000) =>
    Array.from({ length }, (_, at) => ({ id: idOf(at), position: positionOf(at) })).sort(inOrder);
  const MOVED = 5000;

  it.each([
    { name: 'a gap takes the card', of: cards((at) => at * 10), place: 500, moved: [[MOVED, 4995]] },
    { name: 'the front leaves a gap', of: cards((at) => at), place: 0, moved: [[MOVED, -1000]] },
    { name: 'and so does the end', of: cards((at) => at), place: 1000, moved: [[MOVED, 1999]] },
    {
      name: 'a newer card shares the position of the one before it',
      of: cards((at) => at),
      place: 500,
      moved: [[MOVED, 499]],
    },
    {
      name: 'or of the one behind it, if it is older',
      of: cards(
        (at) => at,
        (at) => 9000 + at,
      ),
      place: 500,
      moved: [[MOVED, 500]],
    },
    {
      name: 'the last position is never passed',
      of: cards(
        (at) => LARGEST - 999 + at,
        (at) => 9000 + at,
      ),
      place: 1000,
      moved: [
        [MOVED, LARGEST],
        [9999, LARGEST - 1],
      ],
    },
  ])('$name', ({ of, place, moved }) => {
    const placed = placeBetween(MOVED, around(of, place));
    expect(placed!.map(({ id, position }) => [id, position])).toEqual(moved);
  });

  it('no gap among older and older cards: all have to be spread, unless the end is near', () => {
    const descending = cards(
      (at) => at,
      (at) => 9000 - 2 * at,
    );
    expect(placeBetween(8001, around(descending, 500))).toBeUndefined();
    expect(placeBetween(7021, around(descending, 990))).toHaveLength(11);
  });

  it('keeps the order of the others, whatever their positions and ids, and moves few of them', () => {
    const of = fc.uniqueArray(fc.integer({ min: 1, max: 100_000 }), { minLength: 450, maxLength: 450 });
    fc.assert(
      fc.property(
        of,
        fc.integer({ min: 0, max: 449 }),
        fc.integer({ min: 1, max: 600 }),
        ([moved, ...ids], place, range) => {
          const others = cards(
            (at) => (at * 7) % range,
            (at) => ids[at]!,
            ids.length,
          );
          const placed = placeBetween(moved!, around(others, place));
          if (placed === undefined) return;

          const positions = new Map(placed.map(({ id, position }) => [id, position]));
          const all = [...others.slice(0, place), { id: moved!, position: 0 }, ...others.slice(place)];
          const after = all.map(({ id, position }) => ({ id, position: positions.get(id) ?? position }));
          expect(after.toSorted(inOrder).map(({ id }) => id)).toEqual(all.map(({ id }) => id));
          expect(placed.length).toBeLessThanOrEqual(MOST_NUMBERED);
        },
      ),
    );
  });
});

describe('cards.move in a group of more than 200 cards', () => {
  /** Cards without gaps; `id` counts up or down along the group. */
  async function givenLargeGroup(direction: 'asc' | 'desc') {
    const world = await givenWorld();
    const { project, asMember } = world;
    const group_id = await givenGroup(project, await givenBoard(project));
    await query(
      await testDb(),
      sql`
        insert into cards (project_id, platform_id, group_id, title, position, sort_order)
        select ${project.id}, ${project.platform_id}, ${group_id}, 'Card', ${direction === 'asc' ? sql`n` : sql`501 - n`}, n
        from generate_series(1, 500) n`,
    );
    const order = async () => {
      const rows = await query(
        await testDb(),
        sql<Placement & { is_touched: boolean }>`
          select id, position, position <> ${direction === 'asc' ? sql`sort_order` : sql`501 - sort_order`} as is_touched
          from cards where group_id = ${group_id} and deleted_at is null order by position, id`,
      );
      return { ids: rows.map(({ id }) => id), touched: rows.filter(({ is_touched }) => is_touched).length };
    };
    const move = (id: number, position?: number) => asMember.rpc.cards.move.mutate({ id, group_id, position });
    return { ...world, group_id, order, move };
  }

  it.each([
    ['the front', 1, 1],
    ['the middle', 250, 1],
    ['the end', undefined, 1],
    ['a place past the end', LARGEST, 1],
  ])('to %s: it lands there, and only it gets another position', async (_, position, touched) => {
    const { order, move } = await givenLargeGroup('asc');
    const { ids } = await order();
    const [id] = ids.splice(100, 1) as [number];

    const { card } = await move(id, position);

    ids.splice(Math.min((position ?? LARGEST) - 1, ids.length), 0, id);
    expect(await order()).toEqual({ ids, touched });
    expect(card).toMatchObject({ id });
  });

  it('from another group, again and again to the same place', async () => {
    const { order, move, project } = await givenLargeGroup('asc');
    const { ids } = await order();
    const given = [await givenCard(project), await givenCard(project), await givenCard(project)];

    for (const id of [...given, ...given.toReversed()]) await move(id, 300);

    ids.splice(299, 0, ...given);
    expect((await order()).ids).toEqual(ids);
  });

  it('without any gap, all cards are spread', async () => {
    const { order, move } = await givenLargeGroup('desc');
    const { ids } = await order();
    const id = ids[250]!;
    await query(
      await testDb(),
      sql`update cards set position = case when id = ${id} then 0 else position - 1 end where id = any(${ids.slice(250)})`,
    );

    const { card } = await move(id, 251);

    expect(await order()).toMatchObject({ ids });
    expect(card.position).toBe(250_500);
  });
});
