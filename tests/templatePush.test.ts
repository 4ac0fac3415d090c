import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { Migration20261115180336_fill_brought as FillBrought } from '../server/database/migrations/Migration20261115180336_fill_brought.ts';
import { query, transact } from '../server/database/query.ts';
import { makeCaller, refusalOf } from './harness/caller.ts';
import { countStatements, databaseUrl, givenDatabase, givenService, testDatabase } from './harness/service.ts';
import {
  boardIn,
  copiesIn,
  everyPage,
  givenTemplate,
  groupsIn,
  only,
  reportOf,
  type Template,
  titlesIn,
} from './harness/template.ts';
import { givenBoard, givenGroup, givenProject, givenWorld, stored, testDb } from './harness/world.ts';

const sync = ({ asSuperadmin, board }: Template) => asSuperadmin.rpc.masterBoards.sync.mutate({ board_id: board });
const pushBoard = ({ asSuperadmin, board }: Template) => asSuperadmin.rpc.masterBoards.push.mutate({ board_id: board });
const pushGroup = ({ asSuperadmin }: Template, group_id: number) =>
  asSuperadmin.rpc.masterGroups.push.mutate({ group_id });

describe('masterBoards.push', () => {
  it('adds missing copies of the board and its groups, but no cards', async () => {
    const template = await givenTemplate();
    const [first] = template.projects;

    expect(await pushBoard(template)).toEqual({ projects_updated: 2 });

    expect(await boardIn(first, template)).toMatchObject({
      title: 'Template',
      tool_key: template.tool,
      brought: { title: 'Template', description: null, tool_key: template.tool, is_active: true },
    });
    expect(await groupsIn(first, template)).toMatchObject([
      { title: 'First', color: 'blue', position: 1, brought: { title: 'First', color: 'blue', position: 1 } },
      { title: 'Second', position: 2 },
    ]);
    expect(await copiesIn(first, template)).toEqual([]);
    expect(await boardIn(template.without, template)).toBeUndefined();
  });

  it('brings changed fields to the copies, and changes nothing when run again', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first] = template.projects;
    await sync(template);
    await masterBoards.update.mutate({ id: template.board, title: 'New', description: 'About' });
    await masterGroups.update.mutate({ id: template.groups[0]!, title: 'Renamed' });
    await masterGroups.configure.mutate({ id: template.groups[1]!, type: 't', icon: 'i', is_collapsed: true });

    expect(await pushBoard(template)).toEqual({ projects_updated: 2 });

    const board = await boardIn(first, template);
    const groups = await groupsIn(first, template);
    expect(board).toMatchObject({ title: 'New', description: 'About', brought: { title: 'New' } });
    expect(board.updated_at > board.created_at).toBe(true);
    expect(groups).toMatchObject([
      { title: 'Renamed', color: 'blue' },
      { type: 't', icon: 'i', is_collapsed: false },
    ]);
    expect((await reportOf(template))[0]).toMatchObject({
      outcome: 'updated',
      boards_updated: 1,
      groups_updated: 2,
      cards_updated: 0,
    });

    const nextId = () =>
      givenGroup(template.project, board.id, { project_id: first.id, platform_id: first.platform_id });
    const id = await nextId();
    expect(await pushBoard(template)).toEqual({ projects_updated: 0 });
    expect(await nextId()).toBe(id + 1);
    expect(await boardIn(first, template)).toEqual(board);
    expect(await groupsIn(first, template)).toEqual(groups);
  });

  it('keeps the one of three fields that a project changed, also in later pushes', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first, second] = template.projects;
    await sync(template);
    const inFirst = template.asSuperadmin.in(first.id).rpc;
    await inFirst.boards.update.mutate({ id: (await boardIn(first, template)).id, description: 'Ours' });
    await inFirst.groups.update.mutate({ id: (await groupsIn(first, template))[0].id, color: null });

    for (const round of ['1', '2']) {
      await masterBoards.update.mutate({ id: template.board, title: `T${round}`, description: `D${round}` });
      await masterGroups.update.mutate({ id: template.groups[0]!, title: `G${round}`, description: `E${round}` });
      await masterGroups.configure.mutate({ id: template.groups[0]!, color: `C${round}` });
      expect(await pushBoard(template)).toEqual({ projects_updated: 2 });

      expect(await boardIn(first, template)).toMatchObject({ title: `T${round}`, description: 'Ours' });
      expect((await groupsIn(first, template))[0]).toMatchObject({
        title: `G${round}`,
        description: `E${round}`,
        color: null,
      });
      expect(await boardIn(second, template)).toMatchObject({ title: `T${round}`, description: `D${round}` });
      expect((await groupsIn(second, template))[0]).toMatchObject({ color: `C${round}` });
    }
  });

  it('follows the template again in a field where the project has its new value', async () => {
    const template = await givenTemplate();
    const { masterBoards } = template.asSuperadmin.rpc;
    const [first] = template.projects;
    await sync(template);
    const { id } = await boardIn(first, template);
    await template.asSuperadmin.in(first.id).rpc.boards.update.mutate({ id, title: 'Same' });
    const { updated_at } = await stored('boards', id);

    await masterBoards.update.mutate({ id: template.board, title: 'Same' });
    await pushBoard(template);
    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'unchanged', boards_updated: 0 });
    expect(await stored('boards', id)).toMatchObject({ updated_at });
    await masterBoards.update.mutate({ id: template.board, title: 'Next' });
    await pushBoard(template);

    expect(await stored('boards', id)).toMatchObject({ title: 'Next' });
  });

  it('brings the order of groups; positions that a project changed stay, the others follow', async () => {
    const template = await givenTemplate();
    const [one, two] = template.groups;
    const [first, second] = template.projects;
    await sync(template);
    const [, copyOfTwo] = await groupsIn(first, template);
    await template.asSuperadmin.in(first.id).rpc.groups.reorder.mutate({ groups: [{ id: copyOfTwo.id, position: 7 }] });

    const groups = [
      { id: one, position: 5 },
      { id: two, position: 4 },
    ];
    await template.asSuperadmin.rpc.masterGroups.reorder.mutate({ board_id: template.board, groups });
    await pushBoard(template);

    expect((await groupsIn(first, template)).map(({ title, position }) => [title, position])).toEqual([
      ['First', 5],
      ['Second', 7],
    ]);
    expect(await titlesIn(second, template)).toEqual(['Second', 'First']);
  });

  it('skips projects without the new tool, whose copies stay as they are', async () => {
    const template = await givenTemplate();
    const [first, second] = template.projects;
    await sync(template);
    await template.asSuperadmin.rpc.masterBoards.update.mutate({
      id: template.board,
      tool_key: 'another',
      title: 'New',
    });

    // The projects `second` and `without` have the tool; other tests may have created more.
    expect((await pushBoard(template)).projects_updated).toBeGreaterThanOrEqual(2);

    expect(await boardIn(first, template)).toMatchObject({ title: 'Template', tool_key: template.tool });
    expect(await boardIn(second, template)).toMatchObject({ title: 'New', tool_key: 'another' });
    expect(await boardIn(template.without, template)).toMatchObject({ title: 'New', tool_key: 'another' });
    expect(await reportOf(template)).toMatchObject([
      { project_id: first.id, outcome: 'skipped', reason: 'no_access' },
      { project_id: second.id, outcome: 'updated', boards_updated: 1, groups_updated: 0 },
      { project_id: template.without.id, outcome: 'added', boards_added: 1, groups_added: 2 },
    ]);
  });

  it('leaves deleted copies deleted and unchanged', async () => {
    const template = await givenTemplate();
    const [first, second] = template.projects;
    await sync(template);
    const board = await boardIn(first, template);
    const [group] = await groupsIn(second, template);
    await template.asSuperadmin.in(first.id).rpc.boards.delete.mutate({ id: board.id });
    await template.asSuperadmin.in(second.id).rpc.groups.delete.mutate({ id: group.id });
    await template.asSuperadmin.rpc.masterBoards.update.mutate({ id: template.board, title: 'New' });
    await template.asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[0]!, title: 'New' });
    await template.asSuperadmin.rpc.masterGroups.create.mutate({ board_id: template.board, title: 'Third' });

    expect(await pushBoard(template)).toEqual({ projects_updated: 1 });

    expect(await stored('boards', board.id)).toMatchObject({ title: 'Template', deleted_at: expect.anything() });
    expect(await titlesIn(first, template)).toEqual(['First', 'Second']);
    expect(await stored('groups', group.id)).toMatchObject({ title: 'First', deleted_at: expect.anything() });
    expect(await titlesIn(second, template)).toEqual(['First', 'Second', 'Third']);
    expect(await reportOf(template)).toMatchObject([
      { outcome: 'skipped', reason: 'deleted_by_project' },
      { outcome: 'added', groups_added: 1, boards_updated: 1, groups_updated: 0 },
      { outcome: 'skipped', reason: 'no_access' },
    ]);
  });

  it('404 for a board of a project, also from the preview', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const board_id = await givenBoard(project);
    const { masterBoards } = asSuperadmin.rpc;

    const refusals = await Promise.all(
      [masterBoards.push.mutate({ board_id }), masterBoards.previewPush.query({ board_id })].map(refusalOf),
    );

    const refused = { status: 404, message: 'There is no such master board.' };
    expect(refusals).toMatchObject([refused, refused]);
  });
});

describe('masterGroups.push', () => {
  it('adds missing copies of one group and the board, and brings its changed fields alone', async () => {
    const template = await givenTemplate();
    const [one, two] = template.groups;
    const [first] = template.projects;

    expect(await pushGroup(template, two)).toEqual({ projects_updated: 2 });
    expect(await titlesIn(first, template)).toEqual(['Second']);
    expect(await boardIn(first, template)).toMatchObject({ title: 'Template' });

    await sync(template);
    await template.asSuperadmin.rpc.masterBoards.update.mutate({ id: template.board, title: 'New' });
    for (const id of [one, two]) await template.asSuperadmin.rpc.masterGroups.configure.mutate({ id, color: 'red' });
    expect(await pushGroup(template, two)).toEqual({ projects_updated: 2 });

    expect(await groupsIn(first, template)).toMatchObject([{ color: 'blue' }, { color: 'red' }]);
    expect(await boardIn(first, template)).toMatchObject({ title: 'Template' });
    expect(await pushGroup(template, two)).toEqual({ projects_updated: 0 });
    expect(await copiesIn(first, template)).toHaveLength(3);
  });

  it('skips projects that deleted the copy', async () => {
    const template = await givenTemplate();
    const [one] = template.groups;
    const [first] = template.projects;
    await sync(template);
    const [group] = await groupsIn(first, template);
    await template.asSuperadmin.in(first.id).rpc.groups.delete.mutate({ id: group.id });

    expect(await pushGroup(template, one)).toEqual({ projects_updated: 0 });

    expect(await reportOf(template)).toMatchObject([
      { outcome: 'skipped', reason: 'deleted_by_project' },
      { outcome: 'unchanged', reason: null },
      { outcome: 'skipped', reason: 'no_access' },
    ]);
    expect(await titlesIn(first, template)).toEqual(['First', 'Second']);
  });

  it('404 for a group of a project, also from the preview', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const group_id = await givenGroup(project, await givenBoard(project));
    const { masterGroups } = asSuperadmin.rpc;

    const refusals = await Promise.all(
      [masterGroups.push.mutate({ group_id }), masterGroups.previewPush.query({ group_id })].map(refusalOf),
    );

    const refused = { status: 404, message: 'There is no such master group.' };
    expect(refusals).toMatchObject([refused, refused]);
  });
});

describe('an inactive template', () => {
  it('is not copied by a sync: neither a board, nor a group with its cards, nor a card', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups, masterCards } = template.asSuperadmin.rpc;
    const [first] = template.projects;

    await masterBoards.update.mutate({ id: template.board, is_active: false });
    expect(await sync(template)).toMatchObject({ synced_count: 2 });
    expect(await boardIn(first, template)).toBeUndefined();
    expect(await reportOf(template)).toMatchObject([
      { outcome: 'skipped', reason: 'inactive' },
      { outcome: 'skipped', reason: 'inactive' },
      { outcome: 'skipped', reason: 'no_access' },
    ]);

    await masterBoards.update.mutate({ id: template.board, is_active: true });
    await masterGroups.configure.mutate({ id: template.groups[1]!, is_active: false });
    await masterCards.update.mutate({ id: template.cards[0]!, is_active: false });
    await sync(template);
    expect(await titlesIn(first, template)).toEqual(['First']);
    expect((await copiesIn(first, template)).map(({ title, position }) => [title, position])).toEqual([['Two', 1]]);
    await sync(template);
    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'unchanged', reason: null });

    await masterGroups.configure.mutate({ id: template.groups[1]!, is_active: true });
    await masterCards.update.mutate({ id: template.cards[0]!, is_active: true });
    await sync(template);
    expect(await copiesIn(first, template)).toHaveLength(3);
  });

  it('that is a card: a push adds no copies, and switches existing ones off', async () => {
    const template = await givenTemplate();
    const [one] = template.cards;
    const { masterCards } = template.asSuperadmin.rpc;
    const [first, second] = template.projects;
    await sync(template);
    const later = await givenProject({ tools: [template.tool] });
    template.projects.push(later);
    await query(
      await testDb(),
      sql`update cards set title = 'Mine' where master_card_id = ${one} and project_id = ${second.id}`,
    );

    await masterCards.update.mutate({ id: one, is_active: false });
    expect(await masterCards.push.mutate({ card_id: one })).toEqual({ projects_updated: 2 });

    expect((await copiesIn(first, template))[0]).toMatchObject({ title: 'One', is_active: false });
    expect((await copiesIn(second, template))[0]).toMatchObject({ title: 'One', is_active: false });
    expect(await boardIn(later, template)).toBeUndefined();
    expect((await reportOf(template)).map(({ reason }: any) => reason)).toEqual([null, null, 'no_access', 'inactive']);
    const created = await masterCards.create.mutate({
      group_id: template.groups[0]!,
      title: 'Off',
      is_active: false,
      push_to_projects: true,
    });
    expect(created).toMatchObject({ projects_updated: 0 });
  });

  it('that is a group or its board: no copies of its cards, and a push of it switches existing copies off', async () => {
    const template = await givenTemplate();
    const [one] = template.groups;
    const { masterBoards, masterGroups, masterCards } = template.asSuperadmin.rpc;
    const [first] = template.projects;
    await sync(template);
    const later = await givenProject({ tools: [template.tool] });
    template.projects.push(later);

    await masterGroups.configure.mutate({ id: one, is_active: false });
    const { card } = await masterCards.create.mutate({ group_id: one, title: 'New' });
    expect(await masterCards.push.mutate({ card_id: card.id })).toEqual({ projects_updated: 0 });
    expect(await pushGroup(template, one)).toEqual({ projects_updated: 2 });
    expect(await groupsIn(first, template)).toMatchObject([{ is_active: false }, { is_active: true }]);
    expect(await pushBoard(template)).toEqual({ projects_updated: 1 });
    expect(await titlesIn(later, template)).toEqual(['Second']);

    await masterBoards.update.mutate({ id: template.board, is_active: false });
    await masterGroups.create.mutate({ board_id: template.board, title: 'Third' });
    expect(await pushBoard(template)).toEqual({ projects_updated: 3 });
    expect(await boardIn(first, template)).toMatchObject({ is_active: false });
    expect(await titlesIn(first, template)).toEqual(['First', 'Second']);
    expect(await pushBoard(template)).toEqual({ projects_updated: 0 });
    expect((await reportOf(template)).map(({ reason }: any) => reason)).toEqual([
      'inactive',
      'inactive',
      'no_access',
      'inactive',
    ]);
  });
});

describe('the previews of pushes', () => {
  it('equal what the runs report, and change nothing', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first, second] = template.projects;
    const [one] = template.groups;
    const third = await givenProject({ tools: [template.tool] });
    template.projects.push(third);
    await sync(template);
    await query(await testDb(), sql`delete from cards where project_id = ${third.id}`);
    await query(await testDb(), sql`delete from groups where project_id = ${third.id}`);
    await template.asSuperadmin.in(first.id).rpc.boards.update.mutate({
      id: (await boardIn(first, template)).id,
      title: 'Ours',
    });
    await masterBoards.update.mutate({ id: template.board, title: 'New' });
    await masterGroups.update.mutate({ id: one, title: 'New' });
    const before = await groupsIn(second, template);

    const group = only(await everyPage((page) => masterGroups.previewPush.query({ group_id: one, ...page })), template);
    expect(await groupsIn(second, template)).toEqual(before);
    await pushGroup(template, one);
    expect(await reportOf(template)).toEqual(group);
    expect(group).toMatchObject([
      { outcome: 'updated', groups_updated: 1, boards_updated: 0 },
      { outcome: 'updated', groups_updated: 1 },
      { outcome: 'skipped', reason: 'no_access' },
      { outcome: 'added', groups_added: 1, groups_updated: 0 },
    ]);

    const board = only(
      await everyPage((page) => masterBoards.previewPush.query({ board_id: template.board, ...page })),
      template,
    );
    await pushBoard(template);
    expect(await reportOf(template)).toEqual(board);
    expect(board).toMatchObject([
      { outcome: 'unchanged', boards_updated: 0 },
      { outcome: 'updated', boards_updated: 1, groups_updated: 0 },
      { outcome: 'skipped', reason: 'no_access' },
      { outcome: 'added', boards_updated: 1, groups_added: 1 },
    ]);
  });
});

describe('the runs of pushes', () => {
  it('name the group or board, and count projects and updates', async () => {
    const template = await givenTemplate();
    const { masterGroups, templateRuns } = template.asSuperadmin.rpc;
    await sync(template);
    await masterGroups.update.mutate({ id: template.groups[0]!, title: 'New' });
    await pushBoard(template);
    await pushGroup(template, template.groups[1]!);
    const [active] = await query(
      await testDb(),
      sql<{ count: number }>`select count(*)::int as count from projects where is_active`,
    );

    const { runs } = await templateRuns.list.query({ board_id: template.board });

    const { count } = active!;
    const done = { projects_total: count, projects_done: count, projects_with_access: 2, projects_skipped: count - 2 };
    expect(runs).toMatchObject([
      { kind: 'push_group', group_id: template.groups[1], group_title: 'Second', card_id: null, ...done },
      { kind: 'push_board', group_id: null, boards_updated: 0, groups_updated: 2, projects_changed: 2, ...done },
      { kind: 'sync', board_title: 'Template', group_id: null, groups_updated: 0, ...done },
    ]);
    expect(await templateRuns.get.query({ id: runs[0]!.id })).toEqual({ run: runs[0] });
    expect(await refusalOf(templateRuns.get.query({ id: 2147483647 }))).toMatchObject({
      status: 404,
      message: 'There is no such run.',
    });
  });

  it('show the progress after each step, while the call runs', async () => {
    const template = await givenTemplate();
    const db = await testDb();
    const [{ total }] = (await query(db, sql`select count(*)::int as total from projects where is_active`)) as [
      { total: number },
    ];
    // Three rows for each project: the board and its groups.
    const third = Math.ceil(total / 3);
    const seen: number[] = [];
    const pause = async () => {
      const { runs } = await template.asSuperadmin.rpc.templateRuns.list.query({ board_id: template.board });
      expect(runs).toMatchObject([{ projects_total: total, finished_at: null, interrupted_at: null }]);
      seen.push(runs[0]!.projects_done);
    };
    const database = { ...(await testDatabase()), bulkPace: { rowsPerStep: 3 * third, pause } };
    const { url } = await givenService({}, { database });

    await makeCaller(url, template.asSuperadmin.token).rpc.masterBoards.push.mutate({ board_id: template.board });

    expect(seen.slice(0, 2)).toEqual([third, 2 * third]);
    expect(seen.at(-1)).toBe(total);
  });

  it('finish without active projects', async () => {
    const template = await givenTemplate();
    const db = await testDb();
    const inactive = await query(
      db,
      sql<{ id: number }>`update projects set is_active = false where is_active returning id`,
    );

    try {
      // A superadmin needs no active project.
      expect(await pushBoard(template)).toEqual({ projects_updated: 0 });
      const { runs } = await template.asSuperadmin.rpc.templateRuns.list.query({ board_id: template.board });
      expect(runs).toMatchObject([{ projects_total: 0, projects_done: 0, finished_at: expect.any(Date) }]);
      const preview = await template.asSuperadmin.rpc.masterBoards.previewPush.query({ board_id: template.board });
      expect(preview).toEqual({ projects: [], next_cursor: null });
    } finally {
      await query(db, sql`update projects set is_active = true where id = any(${inactive.map(({ id }) => id)}::int[])`);
    }
  });

  it('need as many statements for five projects as for two', async () => {
    const template = await givenTemplate();
    const few = await countStatements(() => pushBoard(template));
    for (let count = 0; count < 3; count++) template.projects.push(await givenProject({ tools: [template.tool] }));

    const many = await countStatements(() => pushBoard(template));

    expect(many).toBe(few);
    expect(await titlesIn(template.projects[4]!, template)).toEqual(['First', 'Second']);
  });
});

describe('pushes at the same time', () => {
  it('as syncs, reorders and edits of projects: one copy each, no errors, nothing of a project overwritten', async () => {
    const template = await givenTemplate();
    const { asSuperadmin, groups } = template;
    const { masterBoards, masterGroups } = asSuperadmin.rpc;
    await sync(template);
    const [first] = template.projects;
    const { id } = await boardIn(first, template);
    for (let count = 0; count < 3; count++) template.projects.push(await givenProject({ tools: [template.tool] }));

    await Promise.all([
      ...Array.from({ length: 5 }, () =>
        asSuperadmin.alone().rpc.masterBoards.push.mutate({ board_id: template.board }),
      ),
      ...groups.map((group_id) => asSuperadmin.alone().rpc.masterGroups.push.mutate({ group_id })),
      ...Array.from({ length: 3 }, () =>
        asSuperadmin.alone().rpc.masterBoards.sync.mutate({ board_id: template.board }),
      ),
      masterBoards.update.mutate({ id: template.board, title: 'New', description: 'New' }),
      masterGroups.reorder.mutate({ board_id: template.board, groups: [{ id: groups[0]!, position: 9 }] }),
      asSuperadmin.in(first.id).rpc.boards.update.mutate({ id, title: 'Ours' }),
    ]);
    await pushBoard(template);

    for (const project of template.projects) {
      expect(await titlesIn(project, template)).toEqual(['Second', 'First']);
      expect(await boardIn(project, template)).toMatchObject({
        title: project === first ? 'Ours' : 'New',
        description: 'New',
      });
    }
  });

  it.skipIf(!databaseUrl)('keep a change that a project commits while the push waits for the row', async () => {
    const template = await givenTemplate();
    const [first] = template.projects;
    await sync(template);
    const { id } = await boardIn(first, template);
    await template.asSuperadmin.rpc.masterBoards.update.mutate({
      id: template.board,
      title: 'New',
      description: 'New',
    });
    const other = await givenDatabase();

    const pushed = await transact(other.db, async (db) => {
      await query(db, sql`update boards set title = 'Ours', updated_at = now() where id = ${id}`);
      const push = pushBoard(template);
      await expect
        .poll(
          async () =>
            (
              await query(
                await testDb(),
                sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
              )
            ).length,
          { timeout: 15_000, interval: 20 },
        )
        .toBe(1);
      return { push };
    });
    await pushed.push;
    await other.close();

    expect(await stored('boards', id)).toMatchObject({
      title: 'Ours',
      description: 'New',
      brought: { title: 'Template' },
    });
  });
});

describe('copies from before pushes of boards and groups', () => {
  it('get their own values as brought if they were never changed, else those of the template', async () => {
    const template = await givenTemplate();
    const [first, second] = template.projects;
    await sync(template);
    const db = await testDb();
    const [mine] = await groupsIn(first, template);
    await template.asSuperadmin.in(first.id).rpc.groups.update.mutate({ id: mine.id, title: 'Ours' });
    await template.asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[0]!, title: 'New' });
    await query(db, sql`update boards set brought = null where master_board_id = ${template.board}`);
    await query(db, sql`update groups set brought = null where master_group_id = any(${template.groups}::int[])`);

    const { orm } = await testDatabase();
    const migration = new FillBrought(orm.em.getDriver() as never, orm.config);
    migration.up();
    for (const statement of migration.getQueries()) await query(db, sql.raw(String(statement)));

    expect(await boardIn(first, template)).toMatchObject({ brought: { title: 'Template', tool_key: template.tool } });
    expect((await groupsIn(first, template))[0].brought).toEqual({
      title: 'New',
      description: null,
      type: null,
      color: 'blue',
      icon: null,
      is_active: true,
      position: 1,
    });
    expect((await groupsIn(second, template))[0]).toMatchObject({ title: 'First', brought: { title: 'First' } });
    expect(await stored('boards', template.board)).toMatchObject({ brought: null });
    await pushBoard(template);
    expect(await titlesIn(first, template)).toEqual(['Ours', 'Second']);
    expect(await titlesIn(second, template)).toEqual(['New', 'Second']);
  });

  it('that have no brought at all are treated in the same way', async () => {
    const template = await givenTemplate();
    const [first, second] = template.projects;
    await sync(template);
    const { id } = await boardIn(first, template);
    await template.asSuperadmin.in(first.id).rpc.boards.update.mutate({ id, title: 'Ours' });
    await query(await testDb(), sql`update boards set brought = null where master_board_id = ${template.board}`);
    await template.asSuperadmin.rpc.masterBoards.update.mutate({ id: template.board, title: 'New' });

    await pushBoard(template);

    expect(await boardIn(first, template)).toMatchObject({ title: 'Ours', brought: { title: 'New' } });
    expect(await boardIn(second, template)).toMatchObject({ title: 'New', brought: { title: 'New' } });
  });
});
