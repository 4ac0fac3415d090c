import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { makeCaller, refusalOf } from './harness/caller.ts';
import { countStatements, testService } from './harness/service.ts';
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
  testDb,
} from './harness/world.ts';

const LIST = '/services/operations/v1/operations/boards/list';

describe('POST …/boards/list', () => {
  it('200 with the boards of the project in order, each with its counts', async () => {
    const { asViewer, project } = await givenWorld();
    const last = await givenBoard(project, { title: 'Last', position: 9 });
    const first = await givenBoard(project, { title: 'First', position: -1, tool_key: 'seo', description: 'About it' });
    const second = await givenBoard(project, { title: 'Second', position: 9 });
    const [full, empty] = [await givenGroup(project, first), await givenGroup(project, first)];
    const gone = await givenGroup(project, first, { deleted_at: new Date() });
    await givenCard(project, { group_id: full });
    await givenCard(project, { group_id: full });
    await givenCard(project, { group_id: full, deleted_at: new Date() });
    await givenCard(project, { group_id: gone });
    await givenCard(project);

    const answer = await asViewer.post(LIST);

    expect(answer).toMatchObject({ status: 200, body: { error: false, message: 'Boards of the project.' } });
    expect(answer.body.data.boards.map(({ id }: { id: number }) => id)).toEqual([first, last, second]);
    expect(answer.body.data.boards[0]).toEqual({
      id: first,
      project_id: project.id,
      platform_id: project.platform_id,
      master_board_id: null,
      is_master: false,
      is_active: true,
      title: 'First',
      description: 'About it',
      tool_key: 'seo',
      position: -1,
      created_by: null,
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
      deleted_at: null,
      groups_count: 2,
      cards_count: 2,
    });
    expect(empty).toBeGreaterThan(0);
  });

  it('leaves out deleted boards, master boards and those of other projects', async () => {
    const { asOwner, project, otherProject } = await givenWorld();
    await givenBoard(project, { deleted_at: new Date() });
    await givenMasterBoard();
    await givenBoard(otherProject);

    expect((await asOwner.post(LIST)).body.data).toEqual({ boards: [] });
  });

  it('filters by tool_key from the body, else from the query string', async () => {
    const { asViewer, project } = await givenWorld();
    const seo = await givenBoard(project, { tool_key: 'seo', position: 1 });
    const shop = await givenBoard(project, { tool_key: 'shop', position: 2 });
    const listed = async (path: string, body?: unknown) =>
      (await asViewer.post(path, body)).body.data.boards.map(({ id }: { id: number }) => id);

    expect(await listed(LIST, { tool_key: ' seo ' })).toEqual([seo]);
    expect(await listed(`${LIST}?tool_key=shop`)).toEqual([shop]);
    expect(await listed(`${LIST}?tool_key=shop`, {})).toEqual([shop]);
    expect(await listed(`${LIST}?tool_key=shop`, { tool_key: 'seo' })).toEqual([seo]);
    expect(await listed(`${LIST}?tool_key=`)).toEqual([seo, shop]);
    expect(await listed(LIST, { tool_key: null })).toEqual([seo, shop]);
    expect(await listed(LIST, { tool_key: 'none' })).toEqual([]);
  });

  it('422 for a tool_key that is not text, in the body or the query string', async () => {
    const { asViewer } = await givenWorld();

    for (const [path, body] of [
      [LIST, { tool_key: 5 }],
      [`${LIST}?tool_key=a&tool_key=b`, undefined],
    ] as const) {
      const answer = await asViewer.post(path, body);
      expect(answer.status).toBe(422);
      expect(answer.body).toEqual({
        message: 'tool_key must be text.',
        errors: { tool_key: ['tool_key must be text.'] },
      });
    }
  });

  it('needs no body, no content type and no fields', async () => {
    const { asViewer } = await givenWorld();
    const json = { 'content-type': 'application/json; charset=utf-8' };

    expect((await asViewer.post(LIST)).status).toBe(200);
    expect((await asViewer.post(LIST, undefined, json)).status).toBe(200);
    expect((await asViewer.post(LIST, '', json)).status).toBe(200);
    expect((await asViewer.post(LIST, '{}', json)).status).toBe(200);
  });

  it('works over RPC, with and without input', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenBoard(project, { tool_key: 'seo' });

    const all = await asViewer.rpc.boards.list.query();
    const none = await asViewer.rpc.boards.list.query({ tool_key: 'none' });

    expect(all.boards).toMatchObject([{ id, groups_count: 0, cards_count: 0 }]);
    expect(all.boards[0]!.created_at).toBeInstanceOf(Date);
    expect(none).toEqual({ boards: [] });
  });
});

describe('X-Project-Id', () => {
  it('selects one of the projects of the user; without it, the default one', async () => {
    const { asMember, users, project } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.member, second, 'viewer');
    const [here, there] = [await givenBoard(project), await givenBoard(second)];
    const listed = async (caller: typeof asMember) =>
      (await caller.post(LIST)).body.data.boards.map(({ id }: { id: number }) => id);

    expect(await listed(asMember)).toEqual([here]);
    expect(await listed(asMember.in(project.id))).toEqual([here]);
    expect(await listed(asMember.in(second.id))).toEqual([there]);
    expect((await asMember.in(second.id).rpc.boards.list.query()).boards.map(({ id }) => id)).toEqual([there]);
  });

  it('403 for a project that does not exist, is inactive, or that the user is not a member of', async () => {
    const { asMember, otherProject, users } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.member, inactive, 'owner');

    for (const id of [otherProject.id, inactive.id, 2147483647, 2147483648, 0, -1, 'x', '1,2', '']) {
      const answer = await asMember.post(LIST, undefined, { 'x-project-id': String(id) });
      expect(answer.status).toBe(403);
      expect(answer.body).toEqual({
        error: true,
        message: 'You have no access to this project. Select one of yours with the X-Project-Id header.',
      });
    }
  });

  it('lets a superadmin into every active project', async () => {
    const { asSuperadmin, otherProject } = await givenWorld();
    const inactive = await givenProject({ is_active: false });

    expect((await asSuperadmin.in(otherProject.id).post(LIST)).status).toBe(200);
    expect((await asSuperadmin.in(inactive.id).post(LIST)).status).toBe(403);
    expect((await asSuperadmin.in(2147483647).post(LIST)).status).toBe(403);
  });

  it('403 for a project that does not exist or is inactive, for superadmins and billing users, too', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    const { url } = await testService();
    const asBilling = makeCaller(url, await givenToken(await givenUser({ superadmin_billing: true })));
    const added = { project_id: project.id, email: (await givenUser()).email, role: 'owner' } as const;

    for (const id of [inactive.id, 2147483647]) {
      const calls = [
        asSuperadmin.in(id).rpc.members.add.mutate(added),
        asSuperadmin.in(id).rpc.themes.list.query({}),
        asBilling.in(id).rpc.plans.list.query({}),
        asBilling.in(id).rpc.subscriptions.list.query({}),
      ];
      const refusals = await Promise.all(calls.map((call) => refusalOf(call)));
      expect(refusals.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    }
  });
});

describe('POST …/boards/get', () => {
  const GET = '/services/operations/v1/operations/boards/get';

  it('200 with the board as JSON text: groups and cards in order, without deleted ones', async () => {
    const { asViewer, project } = await givenWorld();
    const board = await givenBoard(project, { title: 'Full' });
    const second = await givenGroup(project, board, { title: 'Second', position: 2 });
    const first = await givenGroup(project, board, { title: 'First', position: 1 });
    await givenGroup(project, board, { deleted_at: new Date() });
    const late = await givenCard(project, { group_id: first, position: 5, due_date: new Date('2020-01-01') });
    const early = await givenCard(project, { group_id: first, position: -5 });
    const same = await givenCard(project, { group_id: first, position: 5 });
    await givenCard(project, { group_id: first, deleted_at: new Date() });
    await givenCard(project);

    const answer = await asViewer.post(GET, { id: board });

    expect(answer).toMatchObject({
      status: 200,
      body: { error: false, message: 'The board.', data: { board: expect.any(String) } },
    });
    const sent = JSON.parse(answer.body.data.board);
    expect(sent).toMatchObject({ id: board, title: 'Full', project_id: project.id });
    expect(sent.groups.map(({ id }: { id: number }) => id)).toEqual([first, second]);
    expect(sent.groups[0].cards.map(({ id }: { id: number }) => id)).toEqual([early, late, same]);
    expect(sent.groups[0].cards[1]).toMatchObject({
      is_overdue: true,
      due_date: '2020-01-01T00:00:00.000Z',
      status: 'open',
    });
    expect(sent.groups[0].cards[1]).not.toHaveProperty('card_type');
    expect(sent.groups[1].cards).toEqual([]);
  });

  it('shows as many cards as cards_count of the list says, also after tour cards were dismissed', async () => {
    const { asViewer, asMember, project } = await givenWorld();
    const id = await givenBoard(project);
    const group_id = await givenGroup(project, id);
    for (const tour_key of ['welcome', null]) await givenCard(project, { group_id, tour_key });
    const counts = async ({ rpc }: typeof asViewer) => {
      const [listed] = (await rpc.boards.list.query()).boards;
      const { board } = await rpc.boards.get.query({ id });
      return { listed: listed!.cards_count, shown: board.groups[0]!.cards.length };
    };

    await asViewer.rpc.tour.dismissAll.mutate();

    expect(await counts(asViewer)).toEqual({ listed: 1, shown: 1 });
    expect(await counts(asMember)).toEqual({ listed: 2, shown: 2 });
  });

  it('leaves out tour cards for the caller who dismissed them, but not for others', async () => {
    const { asViewer, asMember, project } = await givenWorld();
    const board = await givenBoard(project);
    const group_id = await givenGroup(project, board);
    const tour = await givenCard(project, { group_id, tour_key: 'welcome', position: 1 });
    const plain = await givenCard(project, { group_id, position: 2 });
    const seenBy = async (caller: typeof asViewer) =>
      (await caller.rpc.boards.get.query({ id: board })).board.groups[0]!.cards.map(({ id }) => id);

    await asViewer.rpc.tour.dismissAll.mutate();

    expect(await seenBy(asViewer)).toEqual([plain]);
    expect(await seenBy(asMember)).toEqual([tour, plain]);
  });

  it('returns an object with Date fields over RPC, and each card as cards.get does', async () => {
    const { asViewer, project } = await givenWorld();
    const board = await givenBoard(project, { description: 'Quotes ", \\ and \u0007, ä 😀\n' });
    await givenGroup(project, board);
    const groups = [await givenGroup(project, board), await givenGroup(project, board)];
    const dates = [new Date('0999-12-31T23:59:59.999Z'), null, new Date('2030-01-01')];
    for (const group_id of groups)
      for (const due_date of dates)
        for (const snoozed_until of dates) await givenCard(project, { group_id, due_date, snoozed_until });

    const answer = await asViewer.rpc.boards.get.query({ id: board });

    expect(answer.board.description).toBe('Quotes ", \\ and \u0007, ä 😀\n');
    expect(answer.board.created_at).toBeInstanceOf(Date);
    expect(answer.board.groups.map(({ cards }) => cards.length)).toEqual([0, 9, 9]);
    for (const card of answer.board.groups.flatMap(({ cards }) => cards)) {
      expect({ ...card, is_dismissed: false }).toEqual((await asViewer.rpc.cards.get.query({ id: card.id })).card);
    }
    const text = (await asViewer.post(GET, { id: board })).body.data.board;
    expect(text).toBe(JSON.stringify(answer.board));
  });

  it('returns a board without groups over RPC', async () => {
    const { asViewer, project } = await givenWorld();

    const { board } = await asViewer.rpc.boards.get.query({ id: await givenBoard(project) });

    expect(board).toMatchObject({ groups: [], created_at: expect.any(Date), deleted_at: null });
  });

  it('runs two statements, authentication included, for 50 groups and 5,000 cards', async () => {
    const { asViewer, project } = await givenWorld();
    const board = await givenBoard(project);
    const db = await testDb();
    await query(
      db,
      sql`
      with added as (
        insert into groups (project_id, platform_id, board_id, title, position)
        select ${project.id}, ${project.platform_id}, ${board}, 'Group ' || n, n from generate_series(1, 50) n returning id
      )
      insert into cards (project_id, platform_id, group_id, title, position)
      select ${project.id}, ${project.platform_id}, added.id, 'Card ' || n, n from added, generate_series(1, 100) n`,
    );

    const statements = await countStatements(async () => {
      const { board: full } = await asViewer.rpc.boards.get.query({ id: board });
      expect(full.groups).toHaveLength(50);
      expect(full.groups.flatMap(({ cards }) => cards)).toHaveLength(5000);
    });

    expect(statements).toBe(2);
  });
});

describe('boards over RPC', () => {
  it('create puts a board last, or at the given position', async () => {
    const { asMember, project, users } = await givenWorld();

    const { board: first } = await asMember.rpc.boards.create.mutate({ title: ' First ', tool_key: 'seo' });
    const { board: second } = await asMember.rpc.boards.create.mutate({ title: 'Second' });
    const { board: placed } = await asMember.rpc.boards.create.mutate({ title: 'Placed', position: -3 });

    expect(first).toMatchObject({
      title: 'First',
      tool_key: 'seo',
      position: 1,
      project_id: project.id,
      created_by: users.member.id,
    });
    expect([second.position, placed.position]).toEqual([2, -3]);
  });

  it('update changes only what is sent: null clears description and tool_key, but not title and position', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenBoard(project, { title: 'Before', description: 'About', tool_key: 'seo', position: 4 });

    const { board: renamed } = await asMember.rpc.boards.update.mutate({ id, title: 'After' });
    const { board: cleared } = await asMember.rpc.boards.update.mutate({
      id,
      title: null,
      description: null,
      tool_key: '',
      position: null,
    });

    expect(renamed).toMatchObject({ title: 'After', description: 'About', tool_key: 'seo', position: 4 });
    expect(cleared).toMatchObject({ title: 'After', description: null, tool_key: null, position: 4 });
    expect(cleared.updated_at.getTime()).toBeGreaterThan(renamed.created_at.getTime() - 1);
  });

  it('delete also deletes the groups and cards', async () => {
    const { asMember, project } = await givenWorld();
    const [board, other] = [await givenBoard(project), await givenBoard(project)];
    const [group, kept] = [await givenGroup(project, board), await givenGroup(project, other)];
    const [card, keptCard] = [
      await givenCard(project, { group_id: group }),
      await givenCard(project, { group_id: kept }),
    ];

    await asMember.rpc.boards.delete.mutate({ id: board });

    for (const [table, id] of [
      ['boards', board],
      ['groups', group],
      ['cards', card],
    ] as const) {
      expect((await stored(table, id)).deleted_at, table).not.toBeNull();
    }
    expect(await stored('cards', keptCard)).toMatchObject({ deleted_at: null });
    expect((await asMember.rpc.boards.list.query()).boards.map(({ id }) => id)).toEqual([other]);
  });

  it('reorder changes all positions or none', async () => {
    const { asMember, project, otherProject } = await givenWorld();
    const [one, two] = [await givenBoard(project), await givenBoard(project)];
    const foreign = await givenBoard(otherProject);

    await asMember.rpc.boards.reorder.mutate({
      boards: [
        { id: one, position: 9 },
        { id: two, position: 3 },
      ],
    });
    const refused = await refusalOf(
      asMember.rpc.boards.reorder.mutate({
        boards: [
          { id: one, position: 1 },
          { id: foreign, position: 2 },
        ],
      }),
    );

    expect(refused).toEqual({ status: 403, message: 'This board belongs to another project.' });
    expect((await asMember.rpc.boards.list.query()).boards.map(({ id, position }) => [id, position])).toEqual([
      [two, 3],
      [one, 9],
    ]);
  });
});

describe('projects.listOwn', () => {
  it('lists the active projects that the caller belongs to, page by page', async () => {
    const { asMember, users, project } = await givenWorld();
    const second = await givenProject();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.member, second, 'viewer');
    await givenMember(users.member, inactive, 'owner');

    const first = await asMember.rpc.projects.listOwn.query({ limit: 1 });
    const last = await asMember.rpc.projects.listOwn.query({ limit: 1, cursor: first.next_cursor });

    expect(first.projects).toEqual([
      {
        id: project.id,
        platform_id: project.platform_id,
        name: 'A project',
        platform_name: 'A platform',
        role: 'member',
        is_default: true,
      },
    ]);
    expect(last).toMatchObject({ projects: [{ id: second.id, role: 'viewer', is_default: false }], next_cursor: null });
  });
});

describe('an inactive board, group or card', () => {
  it('stays listed for members, with its flag, and works as before', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenBoard(project);
    const group_id = await givenGroup(project, id);
    const { boards, cards, groups } = asMember.rpc;

    await boards.update.mutate({ id, is_active: false });
    const { group } = await groups.configure.mutate({ id: group_id, is_active: false });
    const { card } = await cards.create.mutate({ group_id, title: 'Still possible' });

    expect(group).toMatchObject({ id: group_id, is_active: false });
    expect((await boards.list.query()).boards).toMatchObject([{ id, is_active: false, cards_count: 1 }]);
    expect(await boards.get.query({ id })).toMatchObject({
      board: { is_active: false, groups: [{ is_active: false, cards: [{ id: card.id }] }] },
    });
    expect((await groups.configure.mutate({ id: group_id, is_active: null })).group.is_active).toBe(false);
    expect((await cards.update.mutate({ id: card.id, sort_order: -3 })).card).toMatchObject({ sort_order: -3 });
    expect((await cards.update.mutate({ id: card.id, sort_order: null })).card).toMatchObject({ sort_order: -3 });
  });
});
