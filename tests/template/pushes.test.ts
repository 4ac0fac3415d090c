import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { Migration20261115180336_fill_brought as FillBrought } from '../../server/database/migrations/Migration20261115180336_fill_brought.ts';
import { query } from '../../server/database/query.ts';
import { makeCaller } from '../harness/caller.ts';
import { runMigration } from '../harness/migration.ts';
import { countStatements, givenService, testDatabase } from '../harness/service.ts';
import {
  boardIn,
  copiesIn,
  givenTemplate,
  groupsIn,
  hideEarlierProjects,
  outcomesOf,
  pushBoard,
  pushCard,
  pushGroup,
  reportOf,
  sync,
  titlesIn,
} from '../harness/template.ts';
import { givenProject, stored, testDb } from '../harness/world.ts';

/** What is special to pushes of boards and groups. What they share with a sync is in templateSync.test.ts. */

hideEarlierProjects();

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

  it('skips projects without the new tool, whose copies stay as they are', async () => {
    const template = await givenTemplate();
    const [first, second] = template.projects;
    await sync(template);
    await template.asSuperadmin.rpc.masterBoards.update.mutate({
      id: template.board,
      tool_key: 'another',
      title: 'New',
    });

    expect(await pushBoard(template)).toEqual({ projects_updated: 2 });

    expect(await boardIn(first, template)).toMatchObject({ title: 'Template', tool_key: template.tool });
    expect(await boardIn(second, template)).toMatchObject({ title: 'New', tool_key: 'another' });
    expect(await boardIn(template.without, template)).toMatchObject({ title: 'New', tool_key: 'another' });
    expect(await reportOf(template)).toMatchObject([
      { project_id: first.id, outcome: 'skipped', reason: 'no_access' },
      { project_id: second.id, outcome: 'updated', boards_updated: 1, groups_updated: 0 },
      { project_id: template.without.id, outcome: 'added', boards_added: 1, groups_added: 2 },
    ]);
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
    await masterGroups.configure.mutate({ id: template.groups[1], is_active: false });
    await masterCards.update.mutate({ id: template.cards[0], is_active: false });
    await sync(template);
    expect(await titlesIn(first, template)).toEqual(['First']);
    expect((await copiesIn(first, template)).map(({ title, position }) => [title, position])).toEqual([['Two', 1]]);
    await sync(template);
    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'unchanged', reason: null });

    await masterGroups.configure.mutate({ id: template.groups[1], is_active: true });
    await masterCards.update.mutate({ id: template.cards[0], is_active: true });
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
    expect(await pushCard(template, one)).toEqual({ projects_updated: 2 });

    expect((await copiesIn(first, template))[0]).toMatchObject({ title: 'One', is_active: false });
    expect((await copiesIn(second, template))[0]).toMatchObject({ title: 'One', is_active: false });
    expect(await boardIn(later, template)).toBeUndefined();
    expect((await reportOf(template)).map(({ reason }: any) => reason)).toEqual([null, null, 'no_access', 'inactive']);
    const created = await masterCards.create.mutate({
      group_id: template.groups[0],
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
    expect(await pushCard(template, card.id)).toEqual({ projects_updated: 0 });
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

    const group = await outcomesOf(masterGroups.previewPush.query({ group_id: one }), template);
    expect(await groupsIn(second, template)).toEqual(before);
    await pushGroup(template, one);
    expect(await reportOf(template)).toEqual(group);
    expect(group).toMatchObject([
      { outcome: 'updated', groups_updated: 1, boards_updated: 0 },
      { outcome: 'updated', groups_updated: 1 },
      { outcome: 'skipped', reason: 'no_access' },
      { outcome: 'added', groups_added: 1, groups_updated: 0 },
    ]);

    const board = await outcomesOf(masterBoards.previewPush.query({ board_id: template.board }), template);
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
  it('show the progress after each step, while the call runs', async () => {
    const template = await givenTemplate();
    const seen: number[] = [];
    const pause = async () => {
      const { runs } = await template.asSuperadmin.rpc.templateRuns.list.query({ board_id: template.board });
      expect(runs).toMatchObject([{ projects_total: 5, finished_at: null, interrupted_at: null }]);
      seen.push(runs[0]!.projects_done);
    };
    // Three rows for each project: the board and its groups.
    const database = { ...(await testDatabase()), bulkPace: { rowsPerStep: 6, stepsAtOnce: 1, pause } };
    const { url } = await givenService({}, { database });

    await pushBoard({ ...template, asSuperadmin: makeCaller(url, template.asSuperadmin.token) });

    expect(seen).toEqual([2, 4, 5]);
  });

  it('finish without active projects', async () => {
    const template = await givenTemplate();
    await query(await testDb(), sql`update projects set is_active = false where is_active`);
    const { masterBoards, templateRuns } = template.asSuperadmin.rpc;

    expect(await pushBoard(template)).toEqual({ projects_updated: 0 });

    const { runs } = await templateRuns.list.query({ board_id: template.board });
    expect(runs).toMatchObject([{ projects_total: 0, projects_done: 0, finished_at: expect.any(Date) }]);
    const preview = await masterBoards.previewPush.query({ board_id: template.board });
    expect(preview).toEqual({ projects: [], next_cursor: null });
  });

  it('need as many statements for five projects as for two', async () => {
    const template = await givenTemplate();
    // The first push also publishes the release.
    await pushBoard(template);
    const few = await countStatements(() => pushBoard(template));
    for (let count = 0; count < 3; count++) template.projects.push(await givenProject({ tools: [template.tool] }));

    const many = await countStatements(() => pushBoard(template));

    expect(many).toBe(few);
    expect(await titlesIn(template.projects[4]!, template)).toEqual(['First', 'Second']);
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
    await template.asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[0], title: 'New' });
    await query(db, sql`update boards set brought = null where master_board_id = ${template.board}`);
    await query(db, sql`update groups set brought = null where master_group_id = any(${template.groups}::int[])`);

    await runMigration(FillBrought);

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
