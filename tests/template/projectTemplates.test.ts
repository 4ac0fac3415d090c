import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { refusalOf } from '../harness/caller.ts';
import { countStatements } from '../harness/service.ts';
import {
  boardIn,
  copiesIn,
  givenTemplate,
  groupsIn,
  hideEarlierProjects,
  sync,
  type Template,
  titlesIn,
} from '../harness/template.ts';
import { givenCard, givenMasterBoard, NOWHERE, testDb } from '../harness/world.ts';

/** The templates that a project gets when it is created, gets a tool, or becomes active again. */

hideEarlierProjects();

const create = async ({ asSuperadmin, project: { platform_id } }: Template, tools: string[]) =>
  (await asSuperadmin.rpc.projects.create.mutate({ platform_id, name: 'New', tools })).project;

const update = async ({ asSuperadmin }: Template, id: number, changes: object) =>
  (await asSuperadmin.rpc.projects.update.mutate({ id, ...changes })).project;

const cardTitles = async (project: { id: number; platform_id: number }, template: Template) =>
  (await copiesIn(project, template)).map(({ group_title, title }) => `${group_title}: ${title}`);

const ALL_CARDS = ['First: One', 'First: Two', 'Second: Three'];

describe('a new project', () => {
  it('has copies of the boards of its tools, as a sync makes them, and no entry in the history', async () => {
    const template = await givenTemplate();
    const { templateRuns } = template.asSuperadmin.rpc;
    const runs = async () => (await templateRuns.list.query({ board_id: template.board })).runs;

    const project = await create(template, [template.tool]);
    const lacking = await create(template, ['another']);

    expect(await cardTitles(project, template)).toEqual(ALL_CARDS);
    const { tool: tool_key } = template;
    expect(await boardIn(project, template)).toMatchObject({ title: 'Template', tool_key, brought: { tool_key } });
    expect(await boardIn(lacking, template)).toBeUndefined();
    expect(await runs()).toEqual([]);
    await sync(template);
    const { projects } = await templateRuns.report.query({ id: (await runs())[0]!.id, outcome: 'unchanged' });
    expect(projects).toMatchObject([{ project_id: project.id }]);
  });

  it('has several boards in the order of the templates, those for all projects included', async () => {
    const template = await givenTemplate();
    const title = randomUUID();
    const last = await givenMasterBoard({ board: { title, tool_key: template.tool, position: 2_000_000_000 } });
    const forAll = await givenMasterBoard({ board: { title, tool_key: null, position: 1_999_999_999 } });
    const off = await givenMasterBoard({ board: { title, tool_key: template.tool, is_active: false } });

    const project = await create(template, [template.tool, 'unrelated']);
    await template.asSuperadmin.rpc.masterBoards.delete.mutate({ id: forAll.board });

    const boards = await query(
      await testDb(),
      sql<any>`select * from boards where project_id = ${project.id} order by position, id`,
    );
    expect(boards.map(({ master_board_id }) => master_board_id).slice(-2)).toEqual([forAll.board, last.board]);
    expect(boards.map(({ position }) => position)).toEqual(boards.map((_, at) => at + 1));
    expect(boards.map(({ master_board_id }) => master_board_id)).toContain(template.board);
    expect(boards.map(({ master_board_id }) => master_board_id)).not.toContain(off.board);
    const cards = await query(
      await testDb(),
      sql<any>`
        select c.sort_order, c.position, c.master_card_id, g.board_id from cards c join groups g on g.id = c.group_id
        where c.project_id = ${project.id} order by c.sort_order`,
    );
    expect(cards.map(({ master_card_id }) => master_card_id).slice(-2)).toEqual([forAll.card, last.card]);
    expect(cards.at(-1)).toMatchObject({ board_id: boards.at(-1)!.id, position: 1 });
  });

  it('needs as many statements for three boards as for one', async () => {
    const template = await givenTemplate();
    const one = await countStatements(() => create(template, [template.tool]));
    for (let count = 0; count < 2; count++) await givenMasterBoard({ board: { tool_key: template.tool } });

    const three = await countStatements(() => create(template, [template.tool]));

    expect(three).toBe(one);
  });

  it('422 for an unknown platform, and no copies are left', async () => {
    const { asSuperadmin, board, tool } = await givenTemplate();

    const refused = asSuperadmin.rpc.projects.create.mutate({ platform_id: 2147483647, name: 'New', tools: [tool] });

    expect(await refusalOf(refused)).toMatchObject({ status: 422 });
    expect(await query(await testDb(), sql`select id from boards where master_board_id = ${board}`)).toEqual([]);
  });
});

describe('a project that gets a tool', () => {
  it('200 with the boards of the new tool, and only these', async () => {
    const template = await givenTemplate();
    const other = await givenTemplate();
    const project = await create(template, [other.tool]);
    await other.asSuperadmin.rpc.masterBoards.update.mutate({ id: other.board, title: 'Not synced yet' });

    await update(template, project.id, { tools: [template.tool, other.tool] });

    expect(await cardTitles(project, template)).toEqual(ALL_CARDS);
    expect(await boardIn(project, other)).toMatchObject({ title: 'Template' });
  });

  it('that it had before: gets what it missed, but nothing that it deleted or changed', async () => {
    const template = await givenTemplate();
    const { asSuperadmin, tool } = template;
    const project = await create(template, [tool]);
    const inProject = asSuperadmin.in(project.id).rpc;
    const [first, second] = await groupsIn(project, template);
    await inProject.groups.delete.mutate({ id: second.id });
    await inProject.groups.update.mutate({ id: first.id, title: 'Ours' });
    await update(template, project.id, { tools: [] });
    await givenCard(NOWHERE, { is_master: true, group_id: template.groups[0], title: 'Four', position: 3 });
    await asSuperadmin.rpc.masterBoards.update.mutate({ id: template.board, title: 'New' });
    await asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[0], title: 'New', description: 'New' });
    await sync(template);
    expect(await boardIn(project, template)).toMatchObject({ title: 'Template' });

    await update(template, project.id, { tools: [tool] });

    expect(await boardIn(project, template)).toMatchObject({ title: 'New' });
    expect(await groupsIn(project, template)).toMatchObject([
      { title: 'Ours', description: 'New', deleted_at: null },
      { title: 'Second', deleted_at: expect.anything() },
    ]);
    expect(await cardTitles(project, template)).toEqual(['Ours: One', 'Ours: Two', 'Ours: Four', 'Second: Three']);
  });

  it('changes nothing if it has all of these tools, or if only its name changes', async () => {
    const template = await givenTemplate();
    const project = await create(template, [template.tool]);
    await template.asSuperadmin.rpc.masterBoards.update.mutate({ id: template.board, title: 'Not synced yet' });

    await update(template, project.id, { tools: [template.tool], is_active: true });
    await update(template, project.id, { name: 'Renamed' });

    expect(await boardIn(project, template)).toMatchObject({ title: 'Template' });
  });
});

describe('a project that becomes active again', () => {
  it('200 with what it missed of all its boards', async () => {
    const template = await givenTemplate();
    const other = await givenTemplate();
    const project = await create(template, [template.tool]);
    await update(template, project.id, { is_active: false });
    await template.asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[0], title: 'New' });
    await update(template, project.id, { tools: [template.tool, other.tool] });
    expect(await titlesIn(project, template)).toEqual(['First', 'Second']);
    expect(await boardIn(project, other)).toBeUndefined();

    await update(template, project.id, { is_active: true });

    expect(await titlesIn(project, template)).toEqual(['New', 'Second']);
    expect(await cardTitles(project, other)).toEqual(ALL_CARDS);
  });
});
