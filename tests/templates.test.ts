import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query, transact } from '../server/database/query.ts';
import { interruptAllRuns } from '../server/domain/template/templateRun.ts';
import { makeCaller, refusalOf } from './harness/caller.ts';
import { databaseUrl, givenService } from './harness/service.ts';
import { copiesIn, everyPage, givenTemplate, only, type Template } from './harness/template.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenProject,
  givenWorld,
  NOWHERE,
  stored,
  type TestProject,
  testDb,
} from './harness/world.ts';

const ADMIN = '/services/operations/v1/admin';

const sync = (template: Template) =>
  template.asSuperadmin.post(`${ADMIN}/master-boards/sync`, { board_id: template.board });
const push = (template: Template, card_id: number) =>
  template.asSuperadmin.post(`${ADMIN}/master-cards/push`, { card_id });

describe('POST …/master-boards/sync', () => {
  it('200 with counts; each project with access gets a copy of the board, groups and cards', async () => {
    const template = await givenTemplate();
    const inactive = await givenProject({ tools: [template.tool], is_active: false });

    const answer = await sync(template);

    expect(answer).toMatchObject({
      status: 200,
      body: { error: false, message: 'Master board synced.', data: { synced_count: 2 } },
    });
    expect(answer.body.data.skipped_no_access).toBeGreaterThanOrEqual(1);
    for (const project of template.projects) {
      const copies = await copiesIn(project, template);
      expect(copies.map(({ title, group_title, board_title }) => [board_title, group_title, title])).toEqual([
        ['Template', 'First', 'One'],
        ['Template', 'First', 'Two'],
        ['Template', 'Second', 'Three'],
      ]);
      expect(copies[0]).toMatchObject({
        is_master: false,
        master_card_id: template.cards[0],
        platform_id: project.platform_id,
        description: '<p>1</p>',
        priority: 'high',
        unique_identifier: `${template.tool}-one`,
        status: 'open',
        position: 1,
        sort_order: 1,
      });
      expect(copies[1]).toMatchObject({ tour_key: 'tour', position: 2, sort_order: 2 });
      expect(copies[2]).toMatchObject({ status: 'blocked', position: 1, sort_order: 3 });
    }
    expect(await copiesIn(template.without, template)).toEqual([]);
    expect(await copiesIn(inactive, template)).toEqual([]);
  });

  it('changes nothing when run again, and uses up no ids', async () => {
    const template = await givenTemplate();
    await sync(template);
    const before = await copiesIn(template.projects[0]!, template);
    const nextId = () => givenCard(template.project);

    const first = await nextId();
    expect((await sync(template)).body.data.synced_count).toBe(2);

    expect(await nextId()).toBe(first + 1);
    expect(await copiesIn(template.projects[0]!, template)).toEqual(before);
  });

  it('adds new cards after those that a project has', async () => {
    const template = await givenTemplate();
    await sync(template);
    const [copy] = await copiesIn(template.projects[0]!, template);
    await givenCard(template.projects[0]!, { group_id: copy.group_id, position: 9, sort_order: 40 });
    await givenCard(NOWHERE, { is_master: true, group_id: template.groups[0], title: 'New', position: 0 });

    await sync(template);

    const added = (await copiesIn(template.projects[0]!, template)).find(({ title }) => title === 'New');
    expect(added).toMatchObject({ group_id: copy.group_id, position: 10, sort_order: 41 });
  });

  it('keeps what a project deleted or changed', async () => {
    const template = await givenTemplate();
    await sync(template);
    const [project] = template.projects;
    const [one, two, three] = await copiesIn(project, template);
    const db = await testDb();
    await query(db, sql`update cards set deleted_at = now() where id = ${one.id}`);
    await query(db, sql`update cards set title = 'Mine', group_id = null where id = ${two.id}`);
    await query(db, sql`update groups set deleted_at = now() where id = ${three.group_id}`);
    await givenCard(NOWHERE, { is_master: true, group_id: template.groups[1], title: 'New in a deleted group' });

    await sync(template);

    expect((await stored('cards', one.id)).deleted_at).not.toBeNull();
    expect(await stored('cards', two.id)).toMatchObject({ title: 'Mine', group_id: null });
    expect((await copiesIn(project, template)).map(({ id }) => id)).not.toContain(two.id);
    const [count] = await query(
      db,
      sql<{ count: number }>`select count(*)::int as count from cards where project_id = ${project.id}`,
    );
    expect(count!.count).toBe(3);
  });

  it('skips a project that deleted the board', async () => {
    const template = await givenTemplate();
    await sync(template);
    const [project] = template.projects;
    const [copy] = await copiesIn(project, template);
    await query(
      await testDb(),
      sql`update boards set deleted_at = now() where id = (select board_id from groups where id = ${copy.group_id})`,
    );
    const master = await template.asSuperadmin.rpc.masterGroups.create.mutate({
      board_id: template.board,
      title: 'Third',
    });

    await sync(template);

    const groups = await query(
      await testDb(),
      sql`select id from groups where project_id = ${project.id} and master_group_id = ${master.group.id}`,
    );
    expect(groups).toEqual([]);
  });

  it('copies a board without a tool to every active project', async () => {
    const template = await givenTemplate();
    await query(await testDb(), sql`update boards set tool_key = null where id = ${template.board}`);

    const answer = await sync(template);

    expect(answer.body.data.skipped_no_access).toBe(0);
    expect(await copiesIn(template.without, template)).toHaveLength(3);
    await template.asSuperadmin.rpc.masterBoards.delete.mutate({ id: template.board });
  });

  it("404 for a project's board, and for a deleted master board", async () => {
    const { asSuperadmin, project } = await givenWorld();
    const boards = [await givenBoard(project), await givenBoard(NOWHERE, { is_master: true, deleted_at: new Date() })];

    for (const board_id of boards) {
      const answer = await asSuperadmin.post(`${ADMIN}/master-boards/sync`, { board_id });
      expect(answer.status).toBe(404);
      expect(answer.body).toEqual({ error: true, message: 'There is no such master board.', data: [] });
    }
  });
});

describe('POST …/master-cards/push', () => {
  it('200 with the number of changed projects as text; adds missing copies and updates the fields of the template', async () => {
    const template = await givenTemplate();
    const [one] = template.cards;
    expect((await push(template, one)).body).toEqual({
      error: false,
      message: 'Master card pushed.',
      data: { projects_updated: '2' },
    });
    const [project] = template.projects;
    const copies = await copiesIn(project, template);
    expect(copies.map(({ title }) => title)).toEqual(['One']);
    await query(
      await testDb(),
      sql`update cards set status = 'closed', priority = 'low', title = 'Mine', position = 7 where id = ${copies[0].id}`,
    );

    await template.asSuperadmin.rpc.masterCards.update.mutate({
      id: one,
      title: 'New',
      short_description: 's',
      tour_key: 't',
      is_active: false,
      status: 'to_check',
    });
    const again = await push(template, one);

    expect(again.body.data).toEqual({ projects_updated: '2' });
    expect(await stored('cards', copies[0].id)).toMatchObject({
      title: 'New',
      short_description: 's',
      tour_key: 't',
      is_active: false,
      status: 'closed',
      priority: 'low',
      position: 7,
    });
    expect((await push(template, one)).body.data).toEqual({ projects_updated: '0' });
  });

  it('skips deleted copies, and projects without access', async () => {
    const template = await givenTemplate();
    await sync(template);
    const [one] = template.cards;
    const [copy] = await copiesIn(template.projects[0]!, template);
    await query(await testDb(), sql`update cards set deleted_at = now() where id = ${copy.id}`);
    await template.asSuperadmin.rpc.masterCards.update.mutate({ id: one, title: 'Changed' });

    expect((await push(template, one)).body.data).toEqual({ projects_updated: '1' });
    expect(await stored('cards', copy.id)).toMatchObject({ title: 'One' });
    expect(await copiesIn(template.without, template)).toEqual([]);
  });
});

describe('POST …/master-cards/create', () => {
  const CREATE = `${ADMIN}/master-cards/create`;

  it('201 with the card, which is not pushed by default', async () => {
    const template = await givenTemplate();

    const answer = await template.asSuperadmin.post(CREATE, { group_id: template.groups[0], title: 'Fresh' });

    expect(answer).toMatchObject({
      status: 201,
      body: { error: false, message: 'Master card created.', data: { projects_updated: '0' } },
    });
    expect(answer.body.data.card).toMatchObject({
      is_master: true,
      project_id: null,
      platform_id: null,
      group_id: template.groups[0],
      title: 'Fresh',
      status: 'open',
      priority: 'normal',
      is_active: true,
      position: 3,
      unique_identifier: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(answer.body.data.card).not.toHaveProperty('card_type');
    expect(await copiesIn(template.projects[0]!, template)).toEqual([]);
  });

  it('201 and pushed with push_to_projects', async () => {
    const template = await givenTemplate();

    const answer = await template.asSuperadmin.post(CREATE, {
      group_id: template.groups[1],
      title: 'Everywhere',
      push_to_projects: true,
      unique_identifier: `${template.tool}-x`,
    });

    expect(answer.body.data.projects_updated).toBe('2');
    expect(await copiesIn(template.projects[1]!, template)).toMatchObject([
      { title: 'Everywhere', group_title: 'Second', is_active: true, unique_identifier: `${template.tool}-x` },
    ]);
  });

  const TAKEN = {
    status: 422,
    body: {
      message: 'unique_identifier belongs to another master card.',
      errors: { unique_identifier: ['unique_identifier belongs to another master card.'] },
    },
  };

  it('422 for the identifier of another master card, also in an update, unless that is deleted', async () => {
    const { asSuperadmin, groups, cards, tool } = await givenTemplate();
    const [one, two] = cards;
    const taken = { group_id: groups[1], title: 'x', unique_identifier: `${tool}-one` };
    const { masterCards } = asSuperadmin.rpc;

    const refused = await asSuperadmin.post(CREATE, taken);
    expect(refused).toMatchObject(TAKEN);
    expect(refused.headers.get('x-error-reason')).toBe('already_exists');
    expect(await refusalOf(masterCards.update.mutate({ id: two, unique_identifier: `${tool}-one` }))).toMatchObject({
      status: 422,
      errors: TAKEN.body.errors,
    });
    await masterCards.update.mutate({ id: one, unique_identifier: `${tool}-one` });
    await masterCards.delete.mutate({ id: one });
    expect((await asSuperadmin.post(CREATE, taken)).status).toBe(201);
  });

  it('422 for one of two cards with the same identifier that are created at once', async () => {
    const [first, second] = [await givenTemplate(), await givenTemplate()];
    const create = ({ asSuperadmin, groups }: Template) =>
      asSuperadmin.post(CREATE, { group_id: groups[0], title: 'x', unique_identifier: `${first.tool}-new` });

    const answers = await Promise.all([create(first), create(second)]);

    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422]);
  });

  it('sanitises HTML', async () => {
    const { asSuperadmin, groups } = await givenTemplate();
    const description =
      '<p onclick="x()">Hi <a href="javascript:alert(1)">there</a> <a href="https://example.com" target="_top">link</a></p>' +
      '<script>alert(1)</script><style>p{}</style><img src="x" onerror="y()"><img src="data:text/html,x"><iframe src="https://example.com"></iframe><svg><script>1</script></svg><a href="//example.com">any scheme</a>';

    const answer = await asSuperadmin.post(CREATE, { group_id: groups[0], title: 'x', description });

    expect(answer.status).toBe(201);
    expect(answer.body.data.card.description).toBe(
      '<p>Hi <a>there</a> <a href="https://example.com">link</a></p><img src="x" /><img /><a>any scheme</a>',
    );
  });

  it('422 for HTML that is too long or nests too deeply', async () => {
    const { asSuperadmin, groups } = await givenTemplate();
    const large = await asSuperadmin.post(CREATE, {
      group_id: groups[0],
      title: 'x',
      description: 'd'.repeat(65_537),
    });
    const deep = await asSuperadmin.post(CREATE, {
      group_id: groups[0],
      title: 'x',
      description: '<b>'.repeat(3000),
    });

    expect(large).toMatchObject({
      status: 422,
      body: { errors: { description: ['description must be at most 65536 characters.'] } },
    });
    expect(deep).toMatchObject({
      status: 422,
      body: { errors: { description: ['description must not nest deeper than 100 elements.'] } },
    });
  });

  it('422 for an unknown status, 404 for a group of a project', async () => {
    const { asSuperadmin, groups, project } = await givenTemplate();
    const regular = await givenGroup(project, await givenBoard(project));

    expect(await asSuperadmin.post(CREATE, { group_id: groups[0], title: 'x', status: 'waiting' })).toMatchObject({
      status: 422,
      body: { errors: { status: ['status must be one of open, in_progress, closed, to_check, blocked.'] } },
    });
    expect((await asSuperadmin.post(CREATE, { group_id: regular, title: 'x' })).status).toBe(404);
  });
});

describe('POST …/master-cards/delete', () => {
  const DELETE = `${ADMIN}/master-cards/delete`;

  it('200, and the copies stay, unless delete_from_projects is set', async () => {
    const template = await givenTemplate();
    await sync(template);
    const [one, two] = template.cards;

    expect((await template.asSuperadmin.post(DELETE, { id: one })).body).toEqual({
      error: false,
      message: 'Master card deleted.',
      data: [],
    });
    await template.asSuperadmin.post(DELETE, { id: two, delete_from_projects: true });

    const states = (await copiesIn(template.projects[0]!, template)).map(({ title, deleted_at }) => [
      title,
      deleted_at !== null,
    ]);
    expect(states).toEqual([
      ['One', false],
      ['Two', true],
      ['Three', false],
    ]);
    expect((await template.asSuperadmin.post(DELETE, { id: one })).status).toBe(404);
    expect((await template.asSuperadmin.post(DELETE, { id: two, delete_from_projects: 'yes' })).status).toBe(422);
  });
});

describe('master groups', () => {
  it('201 when created, in last position of the board', async () => {
    const { asSuperadmin, board, users } = await givenTemplate();

    const answer = await asSuperadmin.post(`${ADMIN}/master-groups/create`, {
      board_id: board,
      title: 'Third',
      description: 'd',
    });

    expect(answer).toMatchObject({ status: 201, body: { message: 'Master group created.' } });
    expect(answer.body.data.group).toMatchObject({
      board_id: board,
      title: 'Third',
      description: 'd',
      position: 3,
      is_master: true,
      project_id: null,
      created_by: users.superadmin.id,
    });
  });

  it('200 with the group as JSON text when updated; null does not clear the title', async () => {
    const { asSuperadmin, groups } = await givenTemplate();

    const answer = await asSuperadmin.post(`${ADMIN}/master-groups/update`, {
      id: groups[0],
      title: null,
      description: 'd',
    });

    expect(JSON.parse(answer.body.data.group)).toMatchObject({
      id: groups[0],
      title: 'First',
      description: 'd',
      color: 'blue',
    });
  });

  it('200 when reordered; 422 for an unknown board or a group of another board, and nothing changes', async () => {
    const { asSuperadmin, board, groups, project } = await givenTemplate();
    const other = await givenTemplate();
    const reorder = (body: object) => asSuperadmin.post(`${ADMIN}/master-groups/reorder`, body);
    const [first, second] = groups;

    expect((await reorder({ board_id: board, groups: [{ id: first, position: 9 }] })).body).toEqual({
      error: false,
      message: 'Master groups reordered.',
      data: [],
    });
    expect(await reorder({ board_id: 2147483647, groups: [] })).toMatchObject({
      status: 422,
      body: { errors: { board_id: ['board_id is not a master board.'] } },
    });
    expect(await reorder({ board_id: await givenBoard(project), groups: [] })).toMatchObject({ status: 422 });
    expect(
      await reorder({
        board_id: board,
        groups: [
          { id: second, position: 1 },
          { id: other.groups[0], position: 2 },
        ],
      }),
    ).toMatchObject({
      status: 422,
      body: { errors: { 'groups.1.id': ['groups.1.id is not a group of this board.'] } },
    });
    expect([(await stored('groups', first)).position, (await stored('groups', second)).position]).toEqual([9, 2]);
  });

  it('200 when deleted together with their cards; the copies stay', async () => {
    const template = await givenTemplate();
    await sync(template);

    await template.asSuperadmin.post(`${ADMIN}/master-groups/delete`, { id: template.groups[0] });

    expect((await stored('cards', template.cards[0]!)).deleted_at).not.toBeNull();
    expect((await copiesIn(template.projects[0]!, template)).map(({ deleted_at }) => deleted_at)).toEqual([
      null,
      null,
      null,
    ]);
  });
});

describe('master boards', () => {
  it('200 with each board as JSON text when listed', async () => {
    const { asSuperadmin, board } = await givenTemplate();

    const answer = await asSuperadmin.post(`${ADMIN}/master-boards/list`);

    const boards = answer.body.data.boards.map((text: string) => JSON.parse(text));
    expect(boards.find(({ id }: { id: number }) => id === board)).toMatchObject({
      title: 'Template',
      is_master: true,
      groups_count: 2,
      cards_count: 3,
    });
  });

  it('are deleted together with their groups and cards; the copies stay', async () => {
    const template = await givenTemplate();
    await sync(template);

    const answer = await template.asSuperadmin.post(`${ADMIN}/master-boards/delete`, { id: template.board });

    expect(answer.body).toEqual({ error: false, message: 'Master board deleted.', data: [] });
    for (const [table, id] of [
      ['boards', template.board],
      ['groups', template.groups[0]!],
      ['cards', template.cards[0]!],
    ] as const) {
      expect((await stored(table, id)).deleted_at, table).not.toBeNull();
    }
    expect(await copiesIn(template.projects[0]!, template)).toHaveLength(3);
    expect((await sync(template)).status).toBe(404);
  });

  it('can be created, updated and reordered over RPC', async () => {
    const { asSuperadmin } = await givenWorld();
    const { masterBoards } = asSuperadmin.rpc;

    const { board } = await masterBoards.create.mutate({ title: 'Fresh', tool_key: 'seo' });
    const { board: changed } = await masterBoards.update.mutate({ id: board.id, title: 'Renamed', tool_key: null });
    await masterBoards.reorder.mutate({ boards: [{ id: board.id, position: -5 }] });

    expect(board).toMatchObject({ is_master: true, project_id: null, title: 'Fresh', tool_key: 'seo' });
    expect(changed).toMatchObject({ title: 'Renamed', tool_key: null });
    expect(await stored('boards', board.id)).toMatchObject({ position: -5 });
    expect(
      await refusalOf(
        masterBoards.reorder.mutate({
          boards: [
            { id: board.id, position: 1 },
            { id: 2147483647, position: 2 },
          ],
        }),
      ),
    ).toMatchObject({ status: 404 });
    expect(await stored('boards', board.id)).toMatchObject({ position: -5 });
    await masterBoards.delete.mutate({ id: board.id });
  });

  it('have cards that can be moved within and between their groups; 400 for a card of another board', async () => {
    const template = await givenTemplate();
    const other = await givenTemplate();
    const [first, second] = template.groups;
    const [one, two, three] = template.cards;
    const { masterCards } = template.asSuperadmin.rpc;

    await masterCards.reorder.mutate({
      group_id: second,
      cards: [
        { id: one, position: 5 },
        { id: three, position: 1 },
      ],
    });

    expect(await stored('cards', one)).toMatchObject({ group_id: second, position: 5 });
    expect(await stored('cards', two)).toMatchObject({ group_id: first });
    expect(
      await refusalOf(
        masterCards.reorder.mutate({
          group_id: first,
          cards: [
            { id: two, position: 8 },
            { id: other.cards[0]!, position: 1 },
          ],
        }),
      ),
    ).toMatchObject({ status: 400 });
    expect(await stored('cards', two)).toMatchObject({ group_id: first, position: 2 });
  });
});

describe('the preview, the report and the history', () => {
  it('agree: the preview of a sync changes nothing, and the report equals it', async () => {
    const template = await givenTemplate();
    const { masterBoards, templateRuns } = template.asSuperadmin.rpc;
    const [first, second] = template.projects;

    const preview = only(
      await everyPage((page) => masterBoards.previewSync.query({ board_id: template.board, ...page })),
      template,
    );
    expect(await copiesIn(first, template)).toEqual([]);
    await sync(template);
    const { runs } = await templateRuns.list.query({ board_id: template.board });
    const report = only(await everyPage((page) => templateRuns.report.query({ id: runs[0]!.id, ...page })), template);

    const added = {
      outcome: 'added',
      reason: null,
      boards_added: 1,
      groups_added: 2,
      cards_added: 3,
      boards_updated: 0,
      groups_updated: 0,
      cards_updated: 0,
      project_name: 'A project',
    };
    const skipped = {
      outcome: 'skipped',
      reason: 'no_access',
      boards_added: 0,
      groups_added: 0,
      cards_added: 0,
      boards_updated: 0,
      groups_updated: 0,
      cards_updated: 0,
      project_name: 'A project',
    };
    expect(preview).toEqual([
      { project_id: first.id, ...added },
      { project_id: second.id, ...added },
      { project_id: template.without.id, ...skipped },
    ]);
    expect(report).toEqual(preview);
  });

  it('show for a push which projects are added, updated, unchanged or skipped', async () => {
    const template = await givenTemplate();
    const [one] = template.cards;
    await sync(template);
    const third = await givenProject({ tools: [template.tool] });
    const [deleted, unchanged] = template.projects;
    const db = await testDb();
    await query(
      db,
      sql`update cards set deleted_at = now() where project_id = ${deleted.id} and master_card_id = ${one}`,
    );
    const { masterCards, templateRuns } = template.asSuperadmin.rpc;

    const preview = await everyPage((page) => masterCards.previewPush.query({ card_id: one, ...page }));
    const rowOf = (list: any[], project: TestProject) => list.find(({ project_id }) => project_id === project.id);

    expect(rowOf(preview, deleted)).toMatchObject({ outcome: 'skipped', reason: 'deleted_by_project' });
    expect(rowOf(preview, unchanged)).toMatchObject({ outcome: 'unchanged' });
    expect(rowOf(preview, third)).toMatchObject({ outcome: 'added', boards_added: 1, groups_added: 1, cards_added: 1 });
    await masterCards.update.mutate({ id: one, title: 'Changed' });
    await masterCards.push.mutate({ card_id: one });
    const { runs } = await templateRuns.list.query({ board_id: template.board });
    const updated = await everyPage((page) =>
      templateRuns.report.query({ id: runs[0]!.id, outcome: 'updated', ...page }),
    );
    expect(updated).toMatchObject([{ project_id: unchanged.id, cards_updated: 1 }]);
  });

  it('record who synced and pushed what, newest first, with counts', async () => {
    const template = await givenTemplate();
    await sync(template);
    await push(template, template.cards[0]!);

    const { runs } = await template.asSuperadmin.rpc.templateRuns.list.query({ board_id: template.board });

    expect(runs).toMatchObject([
      {
        kind: 'push',
        board_id: template.board,
        card_id: template.cards[0],
        card_title: 'One',
        projects_with_access: 2,
        projects_changed: 0,
        cards_added: 0,
      },
      {
        kind: 'sync',
        board_title: 'Template',
        card_id: null,
        user_id: template.users.superadmin.id,
        user_name: 'A user',
        projects_with_access: 2,
        projects_changed: 2,
        cards_added: 6,
        finished_at: expect.any(Date),
      },
    ]);
    expect(await refusalOf(template.asSuperadmin.rpc.templateRuns.report.query({ id: 2147483647 }))).toMatchObject({
      status: 404,
    });
  });
});

describe('an unfinished run', () => {
  const runsOf = async ({ asSuperadmin, board }: Template) =>
    (await asSuperadmin.rpc.templateRuns.list.query({ board_id: board })).runs;

  /** Runs a statement in a trigger each time a run records its outcome for a project. */
  async function withOutcomeTrigger(statement: string, work: () => Promise<void>) {
    const db = await testDb();
    const name = sql.ref(`test_${randomUUID()}`);
    await query(
      db,
      sql`create function ${name}() returns trigger language plpgsql as ${sql.lit(`begin ${statement}; return null; end`)}`,
    );
    await query(
      db,
      sql`create trigger ${name} after insert on template_outcomes for each row execute function ${name}()`,
    );
    try {
      await work();
    } finally {
      await query(db, sql`drop trigger ${name} on template_outcomes`);
      await query(db, sql`drop function ${name}()`);
    }
  }

  it('is marked as interrupted at once when it fails, and the next run finishes', async () => {
    const template = await givenTemplate();

    await withOutcomeTrigger(`raise exception 'A fault'`, async () => {
      expect((await sync(template)).status).toBe(500);
    });
    const afterFailure = await runsOf(template);
    await sync(template);

    expect(afterFailure).toMatchObject([{ finished_at: null, interrupted_at: expect.any(Date) }]);
    expect(await runsOf(template)).toMatchObject([
      { finished_at: expect.any(Date), interrupted_at: null },
      { finished_at: null, interrupted_at: expect.any(Date) },
    ]);
  });

  it('429 on a stopping node, and it is marked as interrupted at once', async () => {
    const template = await givenTemplate();
    const { url } = await givenService({}, { isStopping: () => true });

    const stopped = await makeCaller(url, template.asSuperadmin.token).post(`${ADMIN}/master-boards/sync`, {
      board_id: template.board,
    });

    expect(stopped.status).toBe(429);
    expect(stopped.body.message).toBe('The service is stopping. Run this again: finished projects stay.');
    expect(await runsOf(template)).toMatchObject([{ finished_at: null, interrupted_at: expect.any(Date) }]);
  });

  it('counts as interrupted after three minutes without progress, until it progresses again', async () => {
    const template = await givenTemplate();
    const db = await testDb();
    await query(db, sql`insert into template_runs (kind, board_id) values ('sync', ${template.board})`);
    const progressed = (before: string) =>
      query(
        db,
        sql`update template_runs set progressed_at = now() - ${before}::interval where board_id = ${template.board}`,
      );

    await progressed('2 minutes');
    expect(await runsOf(template)).toMatchObject([{ finished_at: null, interrupted_at: null }]);
    await progressed('4 minutes');
    expect(await runsOf(template)).toMatchObject([{ finished_at: null, interrupted_at: expect.any(Date) }]);
    await progressed('0 minutes');
    expect(await runsOf(template)).toMatchObject([{ finished_at: null, interrupted_at: null }]);
  });

  it('finishes normally even if it was marked as interrupted meanwhile', async () => {
    const template = await givenTemplate();
    const mark = `update template_runs set interrupted_at = now(), progressed_at = now() - interval '1 hour' where id = new.run_id`;

    await withOutcomeTrigger(mark, async () => {
      expect((await sync(template)).status).toBe(200);
    });

    expect(await runsOf(template)).toMatchObject([{ finished_at: expect.any(Date), interrupted_at: null }]);
  });

  it('is marked as interrupted when the embedded database is opened again; a finished run is not', async () => {
    const template = await givenTemplate();
    await sync(template);
    const db = await testDb();
    await query(db, sql`insert into template_runs (kind, board_id) values ('sync', ${template.board})`);

    await interruptAllRuns(db);

    expect(await runsOf(template)).toMatchObject([
      { finished_at: null, interrupted_at: expect.any(Date) },
      { finished_at: expect.any(Date), interrupted_at: null },
    ]);
  });
});

describe('concurrent runs', () => {
  it('20 syncs and pushes, deletes and edits at once: one copy each, deleted copies stay deleted, no errors', async () => {
    const template = await givenTemplate();
    await sync(template);
    const [project] = template.projects;
    const [copy] = await copiesIn(project, template);
    for (let count = 0; count < 3; count++) template.projects.push(await givenProject({ tools: [template.tool] }));
    const { masterCards } = template.asSuperadmin.rpc;

    const answers = await Promise.all([
      ...Array.from({ length: 10 }, () => sync(template)),
      ...Array.from({ length: 10 }, (_, round) => push(template, template.cards[round % 3]!)),
      ...Array.from({ length: 5 }, (_, round) =>
        masterCards.update.mutate({ id: template.cards[1]!, title: `Edit ${round}` }).then(() => ({ status: 200 })),
      ),
      template.asSuperadmin.in(project.id).post('/services/operations/v1/operations/cards/delete', { id: copy.id }),
    ]);

    expect(answers.map(({ status }) => status)).toEqual(Array(26).fill(200));
    for (const each of template.projects) {
      const copies = await copiesIn(each, template);
      expect(copies.map(({ master_card_id }) => master_card_id).sort()).toEqual([...template.cards].sort());
    }
    expect((await stored('cards', copy.id)).deleted_at).not.toBeNull();
  });

  it.skipIf(!databaseUrl)(
    'a run that loses its connection leaves no project half done, and the next run completes it',
    async () => {
      const { asSuperadmin } = await givenWorld();
      const db = await testDb();
      const tool = randomUUID();
      const board = await givenBoard(NOWHERE, { is_master: true, tool_key: tool });
      const group = await givenGroup(NOWHERE, board, { is_master: true });
      const CARDS = 900;
      await query(
        db,
        sql`insert into cards (is_master, group_id, title) select true, ${group}, 'Card ' || n from generate_series(1, ${CARDS}::int) n`,
      );
      const { platform_id } = await givenProject();
      await query(
        db,
        sql`
      with added as (insert into projects (platform_id, name) select ${platform_id}, 'Many' from generate_series(1, 40) returning id)
      insert into project_tools (project_id, tool_key) select id, ${tool} from added`,
      );
      const copies = () =>
        query(
          db,
          sql<{ count: number }>`
        select count(c.id)::int as count from project_tools t left join cards c on c.project_id = t.project_id and c.master_card_id is not null
        where t.tool_key = ${tool} group by t.project_id`,
        );
      const isBlocked = sql`datname = current_database() and wait_event_type = 'Lock'`;
      const countBlocked = async () =>
        (await query(await testDb(), sql`select from pg_stat_activity where ${isBlocked}`)).length;

      const { status } = await transact(db, async (db) => {
        // Uncommitted, and last in order: the sync blocks on its unique key after writing all other copies of the step.
        const [copy] = await query(
          db,
          sql<{ id: number }>`
            insert into cards (project_id, platform_id, title, master_card_id)
            select p.id, p.platform_id, 'Copy', m.id from projects p, cards m where m.group_id = ${group}
            order by p.id desc, m.id desc limit 1 returning id`,
        );
        const cut = asSuperadmin.post(`${ADMIN}/master-boards/sync`, { board_id: board });
        await expect.poll(countBlocked, { timeout: 15_000, interval: 20 }).toBe(1);
        await query(db, sql`select pg_terminate_backend(pid) from pg_stat_activity where ${isBlocked}`);
        const answer = await cut;
        await query(db, sql`delete from cards where id = ${copy!.id}`);
        return answer;
      });
      const left = (await copies()).map(({ count }) => count);
      const again = await asSuperadmin.post(`${ADMIN}/master-boards/sync`, { board_id: board });

      expect(status).toBe(500);
      expect(new Set(left)).toEqual(new Set([0, CARDS]));
      expect(again.body.data.synced_count).toBe(40);
      expect((await copies()).map(({ count }) => count)).toEqual(Array(40).fill(CARDS));
    },
  );
});
