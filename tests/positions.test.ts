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

const GROUPS = '/services/operations/v1/operations/groups';
const LARGEST = 2_147_483_647;

type Placed = { title: string; position: number };

/** The live rows of a place in order, as `title: position`. */
async function orderOf(table: string, where: ReturnType<typeof sql>): Promise<string[]> {
  const title = sql.ref(table === 'tags' ? 'name' : 'title');
  const rows = await query(
    await testDb(),
    sql<Placed>`select ${title} as title, position from ${sql.table(table)}
      where ${where} and deleted_at is null order by position, id`,
  );
  return rows.map(({ title, position }) => `${title} ${position}`);
}

/** A board with groups A, B and C at 1, 2 and 3. */
async function givenGroups() {
  const world = await givenWorld();
  const board = await givenBoard(world.project);
  const make = (title: string, position: number) => givenGroup(world.project, board, { title, position });
  const groups = { a: await make('A', 1), b: await make('B', 2), c: await make('C', 3) };
  return { ...world, board, ...groups, order: () => orderOf('groups', sql`board_id = ${board}`) };
}

describe('a position that is sent', () => {
  it('is the place where a group lands; the groups there move behind it, in their order', async () => {
    const { asMember, c, order } = await givenGroups();

    const answer = await asMember.post(`${GROUPS}/update`, { id: c, position: 1, title: 'C first' });

    expect(JSON.parse(answer.body.data.group)).toMatchObject({ position: 1, title: 'C first' });
    expect(await order()).toEqual(['C first 1', 'A 2', 'B 3']);
  });

  it('moves only the groups whose position is taken', async () => {
    const { asMember, a, project, board, order } = await givenGroups();
    await givenGroup(project, board, { title: 'D', position: 9 });

    await asMember.rpc.groups.update.mutate({ id: a, position: 3 });

    expect(await order()).toEqual(['B 2', 'A 3', 'C 4', 'D 9']);
  });

  it('of a partial reorder is taken exactly, and a complete one stays as it was sent', async () => {
    const { asMember, a, b, c, order } = await givenGroups();
    const reorder = (groups: { id: number; position: number }[]) => asMember.rpc.groups.reorder.mutate({ groups });

    await reorder([
      { id: c, position: 1 },
      { id: b, position: 3 },
    ]);
    expect(await order()).toEqual(['C 1', 'A 2', 'B 3']);
    await reorder([
      { id: a, position: 7 },
      { id: b, position: 7 },
      { id: c, position: -1 },
    ]);
    expect(await order()).toEqual(['C -1', 'A 7', 'B 7']);
  });

  it('also for a new group, and a deleted one is not in the way', async () => {
    const { asMember, board, project, order } = await givenGroups();
    await givenGroup(project, board, { position: 0, deleted_at: new Date() });

    for (const [title, position] of [
      ['D', 2],
      ['E', 0],
    ] as const)
      await asMember.rpc.groups.create.mutate({ board_id: board, title, position });

    expect(await order()).toEqual(['E 0', 'A 1', 'D 2', 'B 3', 'C 4']);
  });

  it('lands in front of rows with the same position, and keeps the order of equal ones', async () => {
    const { asMember, board, project, order } = await givenGroups();
    const last = await givenGroup(project, board, { title: 'D', position: 1 });

    await asMember.rpc.groups.update.mutate({ id: last, position: 1 });

    expect(await order()).toEqual(['D 1', 'A 2', 'B 3', 'C 4']);
  });

  it('does not leave the range of integers', async () => {
    const { asMember, a, b, order } = await givenGroups();
    await asMember.rpc.groups.update.mutate({ id: a, position: LARGEST });

    await asMember.rpc.groups.update.mutate({ id: b, position: LARGEST });

    expect(await order()).toEqual(['C 3', `A ${LARGEST}`, `B ${LARGEST}`]);
  });

  it('of a hundred concurrent updates leaves no two groups at one position', async () => {
    const { asMember, a, b, c, order } = await givenGroups();

    const calls = Array.from({ length: 99 }, (_, at) =>
      asMember.rpc.groups.update.mutate({ id: [a, b, c][at % 3]!, position: 1 + (at % 2) }),
    );
    await Promise.all(calls);

    const positions = (await order()).map((placed) => placed.split(' ')[1]);
    expect(new Set(positions).size).toBe(3);
  });
});

describe('the same rule', () => {
  it('holds for boards', async () => {
    const { asMember, project } = await givenWorld();
    const { rpc } = asMember;
    const [a, b] = [
      await givenBoard(project, { title: 'A', position: 1 }),
      await givenBoard(project, { title: 'B', position: 2 }),
    ];

    await rpc.boards.create.mutate({ title: 'C', position: 1 });
    await rpc.boards.update.mutate({ id: b, position: 1 });
    await rpc.boards.reorder.mutate({ boards: [{ id: a, position: 2 }] });

    expect(await orderOf('boards', sql`project_id = ${project.id}`)).toEqual(['B 1', 'A 2', 'C 3']);
  });

  it('holds for tags', async () => {
    const { asMember, project } = await givenWorld();
    const { rpc } = asMember;
    const a = await givenTag(project, { name: 'A', position: 1 });

    const { tag } = await rpc.tags.create.mutate({ name: 'B', position: 1 });
    expect(tag.position).toBe(1);
    await rpc.tags.create.mutate({ name: 'C' });
    await rpc.tags.update.mutate({ id: a, position: 1 });

    expect(await orderOf('tags', sql`project_id = ${project.id}`)).toEqual(['A 1', 'B 2', 'C 3']);
  });

  it('holds for master groups, within their board', async () => {
    const { asSuperadmin } = await givenWorld();
    const { board, group } = await givenMasterBoard({ group: { title: 'A', position: 1 } });
    const second = await givenGroup(NOWHERE, board, { title: 'B', position: 2, is_master: true });

    await asSuperadmin.rpc.masterGroups.reorder.mutate({ board_id: board, groups: [{ id: second, position: 1 }] });

    expect(await orderOf('groups', sql`board_id = ${board}`)).toEqual(['B 1', 'A 2']);
    expect(group).not.toBe(second);
  });

  it('holds for master boards and for master cards within their group', async () => {
    const { asSuperadmin } = await givenWorld();
    const { rpc } = asSuperadmin;
    const { board, group, card } = await givenMasterBoard({ card: { title: 'A', position: 1 } });
    const second = await givenCard(NOWHERE, { title: 'B', position: 2, group_id: group, is_master: true });

    await rpc.masterCards.reorder.mutate({ group_id: group, cards: [{ id: second, position: 1 }] });
    const { board: taken } = await rpc.masterBoards.update.mutate({ id: board, position: 7 });
    const { board: created } = await rpc.masterBoards.create.mutate({ title: 'New', position: 7 });

    expect(await orderOf('cards', sql`group_id = ${group}`)).toEqual(['B 1', 'A 2']);
    expect([taken.position, created.position]).toEqual([7, 7]);
    expect((await rpc.masterBoards.get.query({ id: board })).board.position).toBeGreaterThan(7);
    expect(card).not.toBe(second);
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
