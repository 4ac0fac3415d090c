import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
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
import { givenCard, givenGroup, NOWHERE, stored, type TestProject, testDb } from './harness/world.ts';

/** What a sync brings to projects that have copies. What it adds is in templates.test.ts. */

const ADMIN = '/services/operations/v1/admin';

async function sync({ asSuperadmin, board }: Template) {
  const answer = await asSuperadmin.post(`${ADMIN}/master-boards/sync`, { board_id: board });
  expect(answer.status).toBe(200);
  return answer.body.data;
}

const previewOf = async (template: Template) => {
  const { previewSync } = template.asSuperadmin.rpc.masterBoards;
  return only(await everyPage((page) => previewSync.query({ board_id: template.board, ...page })), template);
};

/** Everything that a sync could write in a project. */
const contentsOf = async (project: TestProject, template: Template) => [
  await boardIn(project, template),
  await groupsIn(project, template),
  await copiesIn(project, template),
];

describe('a sync brings to copies', () => {
  it('what changed on the board and its groups, as the preview says, and the second time nothing', async () => {
    const template = await givenTemplate();
    const { asSuperadmin, board, groups } = template;
    const [first] = template.projects;
    await sync(template);
    await asSuperadmin.rpc.masterBoards.update.mutate({ id: board, title: 'New', description: 'About' });
    await asSuperadmin.post(`${ADMIN}/master-groups/update`, { id: groups[0], title: 'Renamed', description: 'd' });
    await asSuperadmin.rpc.masterGroups.configure.mutate({ id: groups[1]!, type: 't', color: 'c', icon: 'i' });
    const before = await contentsOf(first, template);
    const preview = await previewOf(template);
    expect(await contentsOf(first, template)).toEqual(before);

    expect(await sync(template)).toMatchObject({ synced_count: 2 });

    expect(await reportOf(template)).toEqual(preview);
    expect(preview).toMatchObject([
      { outcome: 'updated', boards_updated: 1, groups_updated: 2, cards_updated: 0, boards_added: 0, groups_added: 0 },
      { outcome: 'updated', boards_updated: 1, groups_updated: 2 },
      { outcome: 'skipped', reason: 'no_access', boards_updated: 0, groups_updated: 0 },
    ]);
    expect(await boardIn(first, template)).toMatchObject({ title: 'New', description: 'About' });
    expect(await groupsIn(first, template)).toMatchObject([
      { title: 'Renamed', description: 'd', color: 'blue', position: 1 },
      { title: 'Second', type: 't', color: 'c', icon: 'i', position: 2 },
    ]);
    const { runs } = await asSuperadmin.rpc.templateRuns.list.query({ board_id: board });
    expect(runs[0]).toMatchObject({ projects_changed: 2, boards_updated: 2, groups_updated: 4, cards_added: 0 });

    const after = await contentsOf(first, template);
    expect(await sync(template)).toMatchObject({ synced_count: 2 });
    expect(await contentsOf(first, template)).toEqual(after);
    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'unchanged', boards_updated: 0, groups_updated: 0 });
  });

  it('no fields of cards', async () => {
    const template = await givenTemplate();
    const [first] = template.projects;
    await sync(template);
    const cards = await copiesIn(first, template);
    await template.asSuperadmin.rpc.masterCards.update.mutate({
      id: template.cards[0]!,
      title: 'New',
      tour_key: 'new',
    });

    await sync(template);

    expect(await copiesIn(first, template)).toEqual(cards);
  });

  it('what is missing and what changed, at once', async () => {
    const template = await givenTemplate();
    const [first] = template.projects;
    await sync(template);
    await givenCard(NOWHERE, { is_master: true, group_id: template.groups[0], title: 'Four', position: 3 });
    await template.asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[1]!, title: 'Renamed' });

    await sync(template);

    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'added', cards_added: 1, groups_updated: 1 });
    expect((await copiesIn(first, template)).map(({ group_title, title }) => [group_title, title])).toEqual([
      ['First', 'One'],
      ['First', 'Two'],
      ['First', 'Four'],
      ['Renamed', 'Three'],
    ]);
  });

  it('that a board or group is switched off, and on again', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first] = template.projects;
    const flags = async () => [
      (await boardIn(first, template)).is_active,
      ...(await groupsIn(first, template)).map(({ is_active }) => is_active),
    ];
    await sync(template);

    await masterGroups.configure.mutate({ id: template.groups[0]!, is_active: false });
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
    await masterGroups.configure.mutate({ id: template.groups[0]!, is_active: true });
    await sync(template);
    expect(await flags()).toEqual([true, true, true]);
    expect(await copiesIn(first, template)).toHaveLength(4);
  });
});

describe('a sync keeps', () => {
  it('the fields that a project changed, and brings the others', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    const [first, second] = template.projects;
    await sync(template);
    const inFirst = template.asSuperadmin.in(first.id).rpc;
    await inFirst.boards.update.mutate({ id: (await boardIn(first, template)).id, title: 'Ours' });
    await inFirst.groups.update.mutate({ id: (await groupsIn(first, template))[0].id, color: null });

    await masterBoards.update.mutate({ id: template.board, title: 'New', description: 'New' });
    await masterGroups.update.mutate({ id: template.groups[0]!, title: 'New' });
    await masterGroups.configure.mutate({ id: template.groups[0]!, color: 'red' });
    await sync(template);

    expect(await boardIn(first, template)).toMatchObject({ title: 'Ours', description: 'New' });
    expect((await groupsIn(first, template))[0]).toMatchObject({ title: 'New', color: null });
    expect(await boardIn(second, template)).toMatchObject({ title: 'New', description: 'New' });
    expect((await groupsIn(second, template))[0]).toMatchObject({ title: 'New', color: 'red' });
  });

  it('what a project deleted, as it was', async () => {
    const template = await givenTemplate();
    const [first, second] = template.projects;
    await sync(template);
    const board = await boardIn(first, template);
    const [group] = await groupsIn(second, template);
    await template.asSuperadmin.in(first.id).rpc.boards.delete.mutate({ id: board.id });
    await template.asSuperadmin.in(second.id).rpc.groups.delete.mutate({ id: group.id });
    await template.asSuperadmin.rpc.masterBoards.update.mutate({ id: template.board, title: 'New' });
    await template.asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[0]!, title: 'New' });

    await sync(template);

    expect(await stored('boards', board.id)).toMatchObject({ title: 'Template', deleted_at: expect.anything() });
    expect(await stored('groups', group.id)).toMatchObject({ title: 'First', deleted_at: expect.anything() });
    expect(await reportOf(template)).toMatchObject([
      { outcome: 'skipped', reason: 'deleted_by_project' },
      { outcome: 'updated', boards_updated: 1, groups_updated: 0 },
      { outcome: 'skipped', reason: 'no_access' },
    ]);
  });

  it('the copies of projects that have lost access', async () => {
    const template = await givenTemplate();
    const [first] = template.projects;
    await sync(template);
    await query(await testDb(), sql`delete from project_tools where project_id = ${first.id}`);
    await template.asSuperadmin.rpc.masterBoards.update.mutate({ id: template.board, title: 'New' });

    expect(await sync(template)).toMatchObject({ synced_count: 1 });

    expect(await boardIn(first, template)).toMatchObject({ title: 'Template' });
  });
});

describe('after a sync the groups are in the order of the template', () => {
  const reorder = ({ asSuperadmin, board }: Template, ids: number[]) =>
    asSuperadmin.post(`${ADMIN}/master-groups/reorder`, {
      board_id: board,
      groups: ids.map((id, at) => ({ id, position: at + 1 })),
    });

  it('if they were reordered', async () => {
    const template = await givenTemplate();
    await sync(template);

    await reorder(template, template.groups.toReversed());
    await sync(template);

    for (const project of template.projects) expect(await titlesIn(project, template)).toEqual(['Second', 'First']);
  });

  it('if one was added between two others', async () => {
    const template = await givenTemplate();
    const [one, two] = template.groups;
    await sync(template);

    const added = await template.asSuperadmin.post(`${ADMIN}/master-groups/create`, {
      board_id: template.board,
      title: 'Between',
    });
    await reorder(template, [one, added.body.data.group.id, two]);
    await sync(template);

    for (const project of template.projects)
      expect(await titlesIn(project, template)).toEqual(['First', 'Between', 'Second']);
  });

  it('if positions are equal, and the first group was copied last', async () => {
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

  it('except for those that a project moved', async () => {
    const template = await givenTemplate();
    const [first, second] = template.projects;
    await sync(template);
    const [copyOfOne] = await groupsIn(first, template);
    await template.asSuperadmin.in(first.id).rpc.groups.reorder.mutate({ groups: [{ id: copyOfOne.id, position: 9 }] });

    const third = await template.asSuperadmin.rpc.masterGroups.create.mutate({
      board_id: template.board,
      title: 'Third',
    });
    await reorder(template, [template.groups[0]!, third.group.id, template.groups[1]!]);
    await sync(template);

    expect(await titlesIn(first, template)).toEqual(['Third', 'Second', 'First']);
    expect(await titlesIn(second, template)).toEqual(['First', 'Third', 'Second']);
  });
});

describe('syncs at the same time', () => {
  it('as changes of the template and of projects: no errors, and the last sync finds nothing to do', async () => {
    const template = await givenTemplate();
    const { asSuperadmin, board, groups } = template;
    const { masterBoards, masterGroups } = asSuperadmin.rpc;
    const [first, second] = template.projects;
    await sync(template);
    const [mine] = await groupsIn(first, template);

    await Promise.all([
      ...Array.from({ length: 5 }, () => asSuperadmin.alone().rpc.masterBoards.sync.mutate({ board_id: board })),
      masterBoards.update.mutate({ id: board, title: 'New' }),
      masterGroups.update.mutate({ id: groups[0]!, title: 'New', description: 'New' }),
      masterGroups.create.mutate({ board_id: board, title: 'Third' }),
      asSuperadmin.in(first.id).rpc.groups.update.mutate({ id: mine.id, title: 'Ours' }),
    ]);
    await sync(template);

    expect(await titlesIn(first, template)).toEqual(['Ours', 'Second', 'Third']);
    expect((await groupsIn(first, template))[0]).toMatchObject({ description: 'New' });
    expect(await titlesIn(second, template)).toEqual(['New', 'Second', 'Third']);
    const preview = await previewOf(template);
    expect(preview.map(({ outcome }: any) => outcome)).toEqual(['unchanged', 'unchanged', 'skipped']);
  });
});
