import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import {
  boardIn,
  copiesIn,
  givenTemplate,
  groupsIn,
  hideEarlierProjects,
  outcomesOf,
  pushBoard,
  reportOf,
  sync,
  type Template,
  titlesIn,
} from '../harness/template.ts';
import { givenCard, givenGroup, givenUser, NOWHERE, stored, type TestProject, testDb } from '../harness/world.ts';

/** What a sync, or a push of a board, brings to projects that have copies. What they add is in templates.test.ts. */

hideEarlierProjects();

const KINDS = [
  ['a sync', sync, 'previewSync'],
  ['a push of a board', pushBoard, 'previewPush'],
] as const;

/** Everything that they could write in a project. */
const contentsOf = async (project: TestProject, template: Template) => [
  await boardIn(project, template),
  await groupsIn(project, template),
  await copiesIn(project, template),
];

const reorder = ({ asSuperadmin, board }: Template, ids: number[]) =>
  asSuperadmin.rpc.masterGroups.reorder.mutate({
    board_id: board,
    groups: ids.map((id, at) => ({ id, position: at + 4 })),
  });

describe.each(KINDS)('%s', (_, bring, preview) => {
  const previewOf = (template: Template) =>
    outcomesOf(template.asSuperadmin.rpc.masterBoards[preview].query({ board_id: template.board }), template);

  it('brings what changed on the board and its groups, as the preview says, and the second time nothing', async () => {
    const template = await givenTemplate();
    const { board: id, groups } = template;
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first] = template.projects;
    await sync(template);
    await masterBoards.update.mutate({ id, title: 'New', description: 'About' });
    await masterGroups.update.mutate({ id: groups[0], title: 'Renamed', description: 'd' });
    await masterGroups.configure.mutate({ id: groups[1], type: 't', color: 'c', icon: 'i', is_collapsed: true });
    const before = await contentsOf(first, template);
    const expected = await previewOf(template);
    expect(await contentsOf(first, template)).toEqual(before);

    await bring(template);

    expect(await reportOf(template)).toEqual(expected);
    expect(expected).toMatchObject([
      { outcome: 'updated', boards_updated: 1, groups_updated: 2, cards_updated: 0, boards_added: 0, groups_added: 0 },
      { outcome: 'updated', boards_updated: 1, groups_updated: 2 },
      { outcome: 'skipped', reason: 'no_access', boards_updated: 0, groups_updated: 0 },
    ]);
    const board = await boardIn(first, template);
    expect(board).toMatchObject({ title: 'New', description: 'About', brought: { title: 'New' } });
    expect(board.updated_at > board.created_at).toBe(true);
    expect(await groupsIn(first, template)).toMatchObject([
      { title: 'Renamed', description: 'd', color: 'blue', position: 1 },
      { title: 'Second', type: 't', color: 'c', icon: 'i', position: 2, is_collapsed: false },
    ]);

    const after = await contentsOf(first, template);
    const inFirst = { project_id: first.id, platform_id: first.platform_id };
    const nextId = await givenGroup(template.project, board.id, inFirst);
    await bring(template);
    expect(await givenGroup(template.project, board.id, inFirst)).toBe(nextId + 1);
    expect(await contentsOf(first, template)).toEqual(after);
    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'unchanged', boards_updated: 0, groups_updated: 0 });
  });

  it('keeps the fields that a project changed, also later, and brings the others', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first, second] = template.projects;
    const [id] = template.groups;
    await sync(template);
    const inFirst = template.asSuperadmin.in(first.id).rpc;
    await inFirst.boards.update.mutate({ id: (await boardIn(first, template)).id, description: 'Ours' });
    await inFirst.groups.update.mutate({ id: (await groupsIn(first, template))[0].id, color: null });

    for (const round of ['1', '2']) {
      await masterBoards.update.mutate({ id: template.board, title: `T${round}`, description: `D${round}` });
      await masterGroups.update.mutate({ id, title: `G${round}` });
      await masterGroups.configure.mutate({ id, color: `C${round}` });
      await bring(template);

      expect(await boardIn(first, template)).toMatchObject({ title: `T${round}`, description: 'Ours' });
      expect((await groupsIn(first, template))[0]).toMatchObject({ title: `G${round}`, color: null });
      expect(await boardIn(second, template)).toMatchObject({ title: `T${round}`, description: `D${round}` });
      expect((await groupsIn(second, template))[0]).toMatchObject({ title: `G${round}`, color: `C${round}` });
    }
  });

  it('keeps what a project deleted, as it was, and the copies of projects that have lost access', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first, second] = template.projects;
    await sync(template);
    const board = await boardIn(first, template);
    const [group] = await groupsIn(second, template);
    await template.asSuperadmin.in(first.id).rpc.boards.delete.mutate({ id: board.id });
    await template.asSuperadmin.in(second.id).rpc.groups.delete.mutate({ id: group.id });
    await masterBoards.update.mutate({ id: template.board, title: 'New' });
    await masterGroups.update.mutate({ id: template.groups[0], title: 'New' });
    await masterGroups.create.mutate({ board_id: template.board, title: 'Third' });

    await bring(template);

    expect(await stored('boards', board.id)).toMatchObject({ title: 'Template', deleted_at: expect.anything() });
    expect(await titlesIn(first, template)).toEqual(['First', 'Second']);
    expect(await stored('groups', group.id)).toMatchObject({ title: 'First', deleted_at: expect.anything() });
    expect(await titlesIn(second, template)).toEqual(['First', 'Second', 'Third']);
    expect(await reportOf(template)).toMatchObject([
      { outcome: 'skipped', reason: 'deleted_by_project' },
      { outcome: 'added', groups_added: 1, boards_updated: 1, groups_updated: 0 },
      { outcome: 'skipped', reason: 'no_access' },
    ]);

    await query(await testDb(), sql`delete from project_tools where project_id = ${second.id}`);
    await masterBoards.update.mutate({ id: template.board, title: 'Newest' });
    await bring(template);
    expect(await boardIn(second, template)).toMatchObject({ title: 'New' });
  });

  it('brings the order of groups, new ones in between, except for those that a project moved', async () => {
    const template = await givenTemplate();
    const [one, two] = template.groups;
    const [first, second] = template.projects;
    await sync(template);
    const [copyOfOne] = await groupsIn(first, template);
    await template.asSuperadmin.in(first.id).rpc.groups.reorder.mutate({ groups: [{ id: copyOfOne.id, position: 9 }] });

    const { group } = await template.asSuperadmin.rpc.masterGroups.create.mutate({
      board_id: template.board,
      title: 'Third',
    });
    await reorder(template, [two, group.id, one]);
    await bring(template);
    expect(await titlesIn(second, template)).toEqual(['Second', 'Third', 'First']);
    await reorder(template, [one, group.id, two]);
    await bring(template);

    expect(await titlesIn(first, template)).toEqual(['Third', 'Second', 'First']);
    expect(await titlesIn(second, template)).toEqual(['First', 'Third', 'Second']);
  });
});

describe('a sync', () => {
  it('orders groups like the template if positions are equal, and the first group was copied last', async () => {
    const template = await givenTemplate();
    const [one, two] = template.groups;
    const db = await testDb();
    const third = await givenGroup(NOWHERE, template.board, { is_master: true, title: 'Third', position: 2 });
    await query(db, sql`update groups set position = 1 where id = any(${[one, two]}::int[])`);
    await query(db, sql`update groups set is_active = false where id = ${one}`);
    await template.asSuperadmin.rpc.masterGroups.push.mutate({ group_id: third });
    await sync(template);

    await query(db, sql`update groups set is_active = true where id = ${one}`);
    await sync(template);

    for (const project of template.projects)
      expect(await titlesIn(project, template)).toEqual(['First', 'Second', 'Third']);
  });

  it('makes copies without an author, since the run has it', async () => {
    const template = await givenTemplate();
    const { id: created_by } = await givenUser();
    for (const [table, id] of [
      ['boards', template.board],
      ...template.groups.map((id) => ['groups', id] as const),
      ...template.cards.map((id) => ['cards', id] as const),
    ] as const)
      await query(await testDb(), sql`update ${sql.table(table)} set created_by = ${created_by} where id = ${id}`);

    await sync(template);

    const authors = (await contentsOf(template.projects[0], template)).flat().map(({ created_by }) => created_by);
    expect(authors).toEqual(Array(6).fill(null));
    const { runs } = await template.asSuperadmin.rpc.templateRuns.list.query({ board_id: template.board });
    expect(runs[0]).toMatchObject({ kind: 'sync', user_id: expect.any(Number) });
  });

  it('adds what is missing and brings what changed at once, but no fields of cards', async () => {
    const template = await givenTemplate();
    const { masterGroups, masterCards } = template.asSuperadmin.rpc;
    const [first] = template.projects;
    await sync(template);
    const added = { is_master: true, group_id: template.groups[0], title: 'Four', position: 3 };
    await givenCard(NOWHERE, added);
    await masterGroups.update.mutate({ id: template.groups[1], title: 'Renamed' });
    await masterCards.update.mutate({ id: template.cards[0], title: 'New', tour_key: 'new' });

    await sync(template);

    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'added', cards_added: 1, groups_updated: 1 });
    expect(await copiesIn(first, template)).toMatchObject([
      { group_title: 'First', title: 'One', tour_key: null },
      { group_title: 'First', title: 'Two' },
      { group_title: 'First', title: 'Four' },
      { group_title: 'Renamed', title: 'Three' },
    ]);
  });

  it('brings that a board or group is switched off, and on again', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first] = template.projects;
    const flags = async () => [
      (await boardIn(first, template)).is_active,
      ...(await groupsIn(first, template)).map(({ is_active }) => is_active),
    ];
    await sync(template);

    await masterGroups.configure.mutate({ id: template.groups[0], is_active: false });
    await givenCard(NOWHERE, { is_master: true, group_id: template.groups[0], title: 'Not copied' });
    await sync(template);
    expect(await flags()).toEqual([true, false, true]);
    await masterBoards.update.mutate({ id: template.board, is_active: false });
    expect(await sync(template)).toMatchObject({ synced_count: 2 });
    expect(await flags()).toEqual([false, false, true]);
    expect(await copiesIn(first, template)).toHaveLength(3);
    await sync(template);
    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'skipped', reason: 'inactive' });

    await masterBoards.update.mutate({ id: template.board, is_active: true });
    await masterGroups.configure.mutate({ id: template.groups[0], is_active: true });
    await sync(template);
    expect(await flags()).toEqual([true, true, true]);
    expect(await copiesIn(first, template)).toHaveLength(4);
  });
});
