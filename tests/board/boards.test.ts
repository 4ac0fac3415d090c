import { describe, expect, it } from 'vitest';
import { ListedBoard } from '../../shared/board.ts';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { pagesOf } from '../harness/pages.ts';
import { testService } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWorld,
  stored,
  type TestProject,
} from '../harness/world.ts';

const OPERATIONS = '/services/operations/v1/operations';
const LIST = `${OPERATIONS}/boards/list`;
const GET = `${OPERATIONS}/boards/get`;
const UNKNOWN = 2_147_483_647;

const idsOf = (rows: { id: number }[]) => rows.map(({ id }) => id);

describe('POST …/boards/list', () => {
  it('200 with the boards of the project in order, and counts without what is deleted', async () => {
    const { asViewer, project, otherProject } = await givenWorld();
    const deleted = { deleted_at: new Date() };
    const last = await givenBoard(project, { position: 9 });
    const first = await givenBoard(project, { position: -1 });
    const second = await givenBoard(project, { position: 9 });
    for (const board of [givenBoard(project, deleted), givenMasterBoard(), givenBoard(otherProject)]) await board;
    const [full, gone] = [await givenGroup(project, first), await givenGroup(project, first, deleted)];
    await givenGroup(project, first);
    for (const state of [{ group_id: full }, { group_id: full, ...deleted }, { group_id: gone }, {}])
      await givenCard(project, state);

    const { status, body } = await asViewer.post(LIST);

    expect(status).toBe(200);
    expect(idsOf(body.data.boards)).toEqual([first, last, second]);
    expect(body.data.boards[0]).toMatchObject({ groups_count: 2, cards_count: 1 });
  });

  it('sends fields of boards only', async () => {
    const { asViewer, project } = await givenWorld();
    await givenBoard(project);

    const [{ boards }, { body }] = await Promise.all([asViewer.rpc.boards.list.query(), asViewer.post(LIST)]);

    for (const board of [boards[0]!, body.data.boards[0]])
      expect(Object.keys(board)).toEqual(ListedBoard.keyof().options);
  });
});

describe('X-Project-Id', () => {
  it('403 for a project that does not exist, is inactive, or that the user is not a member of', async () => {
    const { asMember, otherProject, users } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.member, inactive, 'owner');

    for (const id of [otherProject.id, inactive.id, UNKNOWN, UNKNOWN + 1, 0, -1, 'x', '1,2', ''])
      expect(await asMember.post(LIST, undefined, { 'x-project-id': String(id) })).toMatchObject({
        status: 403,
        body: { message: 'You have no access to this project. Select one of yours with the X-Project-Id header.' },
      });
  });

  it('403 for a project that does not exist or is inactive, for superadmins and billing users, too', async () => {
    const { asSuperadmin, project, otherProject } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    const { url } = await testService();
    const asBilling = makeCaller(url, await givenToken(await givenUser({ superadmin_billing: true })));
    const added = { project_id: project.id, email: (await givenUser()).email, role: 'owner' } as const;

    for (const id of [inactive.id, UNKNOWN]) {
      const calls = [
        asSuperadmin.in(id).rpc.boards.list.query(),
        asSuperadmin.in(id).rpc.members.add.mutate(added),
        asSuperadmin.in(id).rpc.themes.list.query({}),
        asBilling.in(id).rpc.plans.list.query({}),
        asBilling.in(id).rpc.subscriptions.list.query({}),
      ];
      const refusals = await Promise.all(calls.map((call) => refusalOf(call)));
      expect(refusals.map(({ status }) => status)).toEqual(Array(5).fill(403));
    }
    expect((await asSuperadmin.in(otherProject.id).post(LIST)).status).toBe(200);
  });
});

describe('boards.get', () => {
  it('returns groups and cards in order, without deleted ones', async () => {
    const { asViewer, project } = await givenWorld();
    const deleted = { deleted_at: new Date() };
    const id = await givenBoard(project);
    const second = await givenGroup(project, id, { position: 2 });
    const first = await givenGroup(project, id, { position: 1 });
    await givenGroup(project, id, deleted);
    const late = await givenCard(project, { group_id: first, position: 5 });
    const early = await givenCard(project, { group_id: first, position: -5 });
    const same = await givenCard(project, { group_id: first, position: 5 });
    await givenCard(project, { group_id: first, ...deleted });
    await givenCard(project);

    const { board } = await asViewer.rpc.boards.get.query({ id });

    expect(board.groups.map(({ id, cards }) => [id, idsOf(cards)])).toEqual([
      [first, [early, late, same]],
      [second, []],
    ]);
  });

  it('returns Date fields over RPC, each card as cards.get does, and the same as text over REST; in one statement', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenBoard(project, { description: 'Quotes ", \\ and \u0007, ä 😀\n' });
    await givenGroup(project, id);
    const dates = [new Date('0999-12-31T23:59:59.999Z'), null, new Date('2030-01-01')];
    for (const group_id of [await givenGroup(project, id), await givenGroup(project, id)])
      for (const due_date of dates)
        for (const snoozed_until of dates) await givenCard(project, { group_id, due_date, snoozed_until });
    const { boards, cards } = asViewer.rpc;

    const { board } = await boards.get.query({ id });

    expect(board).toMatchObject({ description: 'Quotes ", \\ and \u0007, ä 😀\n', created_at: expect.any(Date) });
    expect(board.groups.map(({ cards }) => cards.length)).toEqual([0, 9, 9]);
    const found = board.groups.flatMap(({ cards }) => cards);
    const each = await Promise.all(found.map(async ({ id }) => (await cards.get.query({ id })).card));
    expect(found.map((card) => ({ ...card, is_dismissed: false }))).toEqual(each);
    expect((await asViewer.post(GET, { id })).body.data.board).toBe(JSON.stringify(board));
    const empty = await boards.get.query({ id: await givenBoard(project) });
    expect(empty.board).toMatchObject({ groups: [], created_at: expect.any(Date), deleted_at: null });
  });
});

describe('groups.reorder', () => {
  const givenGroups = async (project: TestProject) => {
    const board = await givenBoard(project);
    return [await givenGroup(project, board, { position: 1 }), await givenGroup(project, board, { position: 2 })];
  };

  it('404 for an unknown, 403 for a foreign, 400 for a group of another board, and nothing changes', async () => {
    const { asMember, project, otherProject } = await givenWorld();
    const [groups, elsewhere, foreign] = [
      await givenGroups(project),
      await givenGroups(project),
      await givenGroups(otherProject),
    ];
    const deleted = await givenGroup(project, await givenBoard(project), { deleted_at: new Date() });

    for (const [status, ids] of [
      [404, [...groups, UNKNOWN]],
      [404, [deleted, ...groups]],
      [404, [...foreign, ...groups, UNKNOWN]],
      [403, [...groups, ...foreign]],
      [400, [...groups, ...elsewhere]],
    ] as const) {
      const placed = ids.map((id, at) => ({ id, position: 50 + at }));
      expect(await asMember.post(`${OPERATIONS}/groups/reorder`, { groups: placed })).toMatchObject({ status });
    }
    const all = await Promise.all([...groups, ...elsewhere, ...foreign].map((id) => stored('groups', id)));
    expect(all.map(({ position }) => position)).toEqual([1, 2, 1, 2, 1, 2]);
  });
});

describe('delete', () => {
  it('deletes a board with its groups and cards, and a group with its cards', async () => {
    const { asMember, project } = await givenWorld();
    const { boards, groups } = asMember.rpc;
    const given = async () => {
      const board = await givenBoard(project);
      const group = await givenGroup(project, board);
      return { board, group, card: await givenCard(project, { group_id: group }) };
    };
    const isDeleted = async (rows: Awaited<ReturnType<typeof given>>) =>
      Promise.all(Object.entries(rows).map(async ([name, id]) => (await stored(`${name}s`, id)).deleted_at !== null));
    const [whole, partly, kept] = [await given(), await given(), await given()];

    await boards.delete.mutate({ id: whole.board });
    await groups.delete.mutate({ id: partly.group });

    expect(await isDeleted(whole)).toEqual([true, true, true]);
    expect(await isDeleted(partly)).toEqual([false, true, true]);
    expect(await isDeleted(kept)).toEqual([false, false, false]);
  });
});

describe('projects.listOwn', () => {
  it('lists the active projects that the caller belongs to, page by page', async () => {
    const { asMember, users, project } = await givenWorld();
    const [second, inactive] = [await givenProject(), await givenProject({ is_active: false })];
    await givenMember(users.member, second, 'viewer');
    await givenMember(users.member, inactive, 'owner');
    const { listOwn } = asMember.rpc.projects;

    const first = await listOwn.query({ limit: 1 });
    const last = await listOwn.query({ limit: 1, cursor: first.next_cursor });

    const names = { name: 'A project', platform_name: 'A platform' };
    expect(first.projects).toEqual([{ ...project, ...names, role: 'member', is_default: true }]);
    expect(last).toMatchObject({ projects: [{ id: second.id, role: 'viewer', is_default: false }], next_cursor: null });
  });

  it('finds one by its id, and some by a part of their names; never those of others', async () => {
    const { asMember, users, project, otherProject } = await givenWorld();
    const named = await givenProject({ name: 'Shop 5%_off' });
    await givenMember(users.member, named, 'viewer');
    await givenProject({ name: 'Shop 5%_off' });
    const found = async (input: object) => idsOf((await asMember.rpc.projects.listOwn.query(input)).projects);

    expect(await found({ id: project.id })).toEqual([project.id]);
    expect(await found({ id: otherProject.id })).toEqual([]);
    expect(await found({ search: 'SHOP 5%_' })).toEqual([named.id]);
    expect(await found({ search: '5__o' })).toEqual([]);
    expect(await found({ search: 'shop', id: project.id })).toEqual([]);
  });
});

describe('an inactive board or group', () => {
  it('stays listed for members, with its flag, and works as before', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenBoard(project);
    const group_id = await givenGroup(project, id);
    const { boards, cards, groups } = asMember.rpc;

    await boards.update.mutate({ id, is_active: false });
    await groups.configure.mutate({ id: group_id, is_active: false });
    const { card } = await cards.create.mutate({ group_id, title: 'Still possible' });

    expect((await boards.list.query()).boards).toMatchObject([{ id, is_active: false, cards_count: 1 }]);
    expect(await boards.get.query({ id })).toMatchObject({
      board: { is_active: false, groups: [{ is_active: false, cards: [{ id: card.id }] }] },
    });
  });
});

describe('groups.list', () => {
  it('has the live groups of a board in order, page by page', async () => {
    const { asViewer, project } = await givenWorld();
    const board_id = await givenBoard(project);
    const last = await givenGroup(project, board_id, { position: 9 });
    const first = await givenGroup(project, board_id, { position: -1 });
    const second = await givenGroup(project, board_id, { position: 9 });
    await givenGroup(project, board_id, { deleted_at: new Date() });

    const pages = await pagesOf((cursor) => asViewer.rpc.groups.list.query({ board_id, limit: 2, cursor }));

    expect(pages.map(({ groups }) => idsOf(groups))).toEqual([[first, last], [second]]);
  });

  it('404 for an unknown or deleted board, 403 for another project', async () => {
    const { asViewer, asOutsider, project } = await givenWorld();
    const board_id = await givenBoard(project);
    const gone = await givenBoard(project, { deleted_at: new Date() });
    const list = (caller: typeof asViewer, board_id: number) =>
      refusalOf(caller.rpc.groups.list.query({ board_id })).then(({ status }) => status);

    expect([await list(asViewer, UNKNOWN), await list(asViewer, gone), await list(asOutsider, board_id)]).toEqual([
      404, 404, 403,
    ]);
  });
});
