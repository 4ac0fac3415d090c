import { describe, expect, it } from 'vitest';
import { refusalOf } from './harness/caller.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, stored, type TestProject } from './harness/world.ts';

const UPDATE = '/services/operations/v1/operations/groups/update';
const REORDER = '/services/operations/v1/operations/groups/reorder';

const givenGroups = async (project: TestProject, count: number) => {
  const board = await givenBoard(project);
  const groups: number[] = [];
  for (let position = 1; position <= count; position++) groups.push(await givenGroup(project, board, { position }));
  return { board, groups };
};

const positionsOf = async (groups: number[]) =>
  Promise.all(groups.map(async (id) => (await stored('groups', id)).position));

describe('POST …/groups/update', () => {
  it('200 with the updated group as JSON text', async () => {
    const { asMember, project } = await givenWorld();
    const { board, groups } = await givenGroups(project, 1);
    const [id] = groups as [number];

    const answer = await asMember.post(UPDATE, {
      id,
      title: ' New ',
      description: 'd',
      type: 't',
      color: 'c',
      icon: 'i',
      position: -7,
      is_collapsed: true,
    });

    expect(answer).toMatchObject({ status: 200, body: { error: false, message: 'Group updated.' } });
    expect(JSON.parse(answer.body.data.group)).toEqual({
      id,
      project_id: project.id,
      platform_id: project.platform_id,
      master_group_id: null,
      board_id: board,
      position: -7,
      created_by: null,
      is_master: false,
      is_collapsed: true,
      is_active: true,
      title: 'New',
      description: 'd',
      type: 't',
      color: 'c',
      icon: 'i',
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
      deleted_at: null,
    });
  });

  it('changes only what is sent: null clears description, type, color and icon, but not the others', async () => {
    const { asMember, project } = await givenWorld();
    const full = { title: 'T', description: 'd', type: 't', color: 'c', icon: 'i', position: 3, is_collapsed: true };
    const id = await givenGroup(project, await givenBoard(project), full);

    await asMember.post(UPDATE, { id });
    expect(await stored('groups', id)).toMatchObject(full);

    await asMember.post(UPDATE, {
      id,
      title: null,
      description: null,
      type: null,
      color: '',
      icon: ' ',
      position: null,
      is_collapsed: null,
    });
    expect(await stored('groups', id)).toMatchObject({
      ...full,
      description: null,
      type: null,
      color: null,
      icon: null,
    });
  });

  it('403 with data for a group of another project', async () => {
    const { asOutsider, project } = await givenWorld();
    const { groups } = await givenGroups(project, 1);

    const answer = await asOutsider.post(UPDATE, { id: groups[0], title: 'Mine' });

    expect(answer.status).toBe(403);
    expect(answer.body).toEqual({ error: true, message: 'This group belongs to another project.', data: [] });
    expect(await stored('groups', groups[0]!)).toMatchObject({ title: 'A group' });
  });

  it('422 for texts that are too long', async () => {
    const { asMember } = await givenWorld();

    const answer = await asMember.post(UPDATE, {
      id: 1,
      title: 'x'.repeat(256),
      type: 'x'.repeat(51),
      color: 'x'.repeat(51),
      icon: 'x'.repeat(101),
    });

    expect(answer).toMatchObject({
      status: 422,
      body: {
        errors: {
          title: [expect.anything()],
          type: [expect.anything()],
          color: [expect.anything()],
          icon: [expect.anything()],
        },
      },
    });
  });
});

describe('POST …/groups/reorder', () => {
  it('200 with an empty list, and the positions are stored as sent', async () => {
    const { asMember, project } = await givenWorld();
    const { groups } = await givenGroups(project, 3);

    const answer = await asMember.post(REORDER, {
      groups: [
        { id: groups[0], position: 2147483647 },
        { id: groups[2], position: -2147483648 },
      ],
    });

    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ error: false, message: 'Groups reordered.', data: [] });
    expect(await positionsOf(groups)).toEqual([2147483647, 2, -2147483648]);
  });

  it('200 for an empty list, and nothing changes', async () => {
    const { asMember } = await givenWorld();

    expect((await asMember.post(REORDER, { groups: [] })).status).toBe(200);
    expect(await asMember.rpc.groups.reorder.mutate({ groups: [] })).toBeUndefined();
  });

  it('404 for an unknown, 403 for a foreign, 400 for a group of another board, and nothing changes', async () => {
    const { asMember, project, otherProject } = await givenWorld();
    const { groups } = await givenGroups(project, 2);
    const elsewhere = await givenGroups(project, 1);
    const foreign = await givenGroups(otherProject, 1);
    const deleted = await givenGroup(project, await givenBoard(project), { deleted_at: new Date() });
    const placed = (...ids: number[]) => ({ groups: ids.map((id, at) => ({ id, position: 50 + at })) });

    expect(await asMember.post(REORDER, placed(...groups, 2147483647))).toMatchObject({
      status: 404,
      body: { error: true, message: 'There is no such group.', data: [] },
    });
    expect(await asMember.post(REORDER, placed(deleted, ...groups))).toMatchObject({ status: 404 });
    expect(await asMember.post(REORDER, placed(...groups, ...foreign.groups))).toMatchObject({
      status: 403,
      body: { error: true },
    });
    expect(await asMember.post(REORDER, placed(...foreign.groups, ...groups, 2147483647))).toMatchObject({
      status: 404,
    });
    expect(await asMember.post(REORDER, placed(...groups, ...elsewhere.groups))).toMatchObject({
      status: 400,
      body: { error: true, message: 'The groups belong to several boards.', data: [] },
    });
    expect(await positionsOf([...groups, ...elsewhere.groups, ...foreign.groups])).toEqual([1, 2, 1, 1]);
  });

  it.each([
    ['no list', {}, { groups: ['groups is required.'] }],
    ['text instead of a list', { groups: 'x' }, { groups: ['groups must be a list.'] }],
    [
      'the same id twice',
      {
        groups: [
          { id: 1, position: 1 },
          { id: 1, position: 2 },
        ],
      },
      { 'groups.1.id': ['groups.1.id is a duplicate.'] },
    ],
    [
      'wrong elements',
      { groups: [{ id: '1' }, 5] },
      {
        'groups.0.id': ['groups.0.id must be a whole number.'],
        'groups.0.position': ['groups.0.position is required.'],
        'groups.1': ['groups.1 must be an object.'],
      },
    ],
    [
      '1,001 elements',
      { groups: Array.from({ length: 1001 }, (_, at) => ({ id: at + 1, position: at })) },
      { groups: ['groups must have at most 1000 elements.'] },
    ],
  ])('422 for %s', async (_, body, errors) => {
    const { asMember } = await givenWorld();

    const answer = await asMember.post(REORDER, body);

    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({ message: expect.any(String), errors });
  });

  it('422 lists at most 50 invalid fields', async () => {
    const { asMember } = await givenWorld();

    const answer = await asMember.post(REORDER, { groups: Array(1000).fill({}) });

    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body.errors)).toHaveLength(50);
  });

  it('160 concurrent reorders end with the positions of exactly one of them', async () => {
    const { asMember, project } = await givenWorld();
    const { groups } = await givenGroups(project, 12);
    const orders = Array.from({ length: 160 }, (_, round) =>
      groups.map((id, at) => ({ id, position: ((at * 7 + round) % 12) + round * 100 })),
    );
    const shuffled = (order: (typeof orders)[number], round: number) =>
      order.toSorted((a, b) => ((a.id * (round + 3)) % 13) - ((b.id * (round + 3)) % 13));

    const answers = await Promise.all(
      orders.map((order, round) => asMember.post(REORDER, { groups: shuffled(order, round) })),
    );

    expect(answers.map(({ status }) => status)).toEqual(Array(160).fill(200));
    const ended = await positionsOf(groups);
    expect(orders.map((order) => order.map(({ position }) => position))).toContainEqual(ended);
  });
});

describe('groups over RPC', () => {
  it('create puts a group last on its board', async () => {
    const { asMember, project, users } = await givenWorld();
    const { board } = await givenGroups(project, 2);

    const { group } = await asMember.rpc.groups.create.mutate({ board_id: board, title: 'Third', color: 'blue' });

    expect(group).toMatchObject({
      board_id: board,
      title: 'Third',
      color: 'blue',
      position: 3,
      created_by: users.member.id,
      is_collapsed: false,
    });
  });

  it('delete also deletes the cards', async () => {
    const { asMember, project } = await givenWorld();
    const { groups } = await givenGroups(project, 2);
    const [card, kept] = [
      await givenCard(project, { group_id: groups[0] }),
      await givenCard(project, { group_id: groups[1] }),
    ];

    await asMember.rpc.groups.delete.mutate({ id: groups[0]! });

    expect((await stored('cards', card)).deleted_at).not.toBeNull();
    expect((await stored('cards', kept)).deleted_at).toBeNull();
    expect(await refusalOf(asMember.rpc.groups.delete.mutate({ id: groups[0]! }))).toEqual({
      status: 404,
      message: 'There is no such group.',
    });
  });
});
