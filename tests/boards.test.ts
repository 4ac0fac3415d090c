import { describe, expect, it } from 'vitest';
import { givenBoard, givenCard, givenGroup, givenMember, givenProject, givenWorld } from './harness/world.ts';

const LIST = '/services/operations/v1/operations/boards/list';

describe('POST …/boards/list', () => {
  it('200 with the boards of the project in their order, and what they hold', async () => {
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
    await givenBoard({ id: null, platform_id: null } as never, { is_master: true });
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

  it('422 for a tool_key that is no text, wherever it was sent', async () => {
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

  it('answers over RPC, with and without an input', async () => {
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
  it('chooses among the projects of the user; without it, the default one', async () => {
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

  it('403 for a project that the user is no member of, that does not exist, or is inactive', async () => {
    const { asMember, otherProject, users } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.member, inactive, 'owner');

    for (const id of [otherProject.id, inactive.id, 2147483647, 2147483648, 0, -1, 'x', '1,2', '']) {
      const answer = await asMember.post(LIST, undefined, { 'x-project-id': String(id) });
      expect(answer.status).toBe(403);
      expect(answer.body).toEqual({
        error: true,
        message: 'You belong to no such project. Choose one of yours with the X-Project-Id header.',
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
});
