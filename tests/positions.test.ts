import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { makeWay } from '../server/domain/rows/position.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenTag,
  givenWorld,
  NOWHERE,
  testDb,
} from './harness/world.ts';

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
});
