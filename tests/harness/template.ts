import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { query } from '../../server/database/query.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenProject,
  givenWorld,
  NOWHERE,
  type TestProject,
  testDb,
  type World,
} from './world.ts';

export type Template = World & {
  tool: string;
  board: number;
  groups: number[];
  cards: number[];
  projects: TestProject[];
  without: TestProject;
};

/** A master board with two groups and three cards, two projects with its tool, and one without. */
export async function givenTemplate(): Promise<Template> {
  const world = await givenWorld();
  const tool = randomUUID();
  const is_master = true;
  const board = await givenBoard(NOWHERE, { is_master, title: 'Template', tool_key: tool });
  const groups = [
    await givenGroup(NOWHERE, board, { is_master, title: 'First', position: 1, color: 'blue' }),
    await givenGroup(NOWHERE, board, { is_master, title: 'Second', position: 2 }),
  ];
  const card = (group_id: number, position: number, state: object = {}) =>
    givenCard(NOWHERE, { is_master, group_id, position, ...state });
  const cards = [
    await card(groups[0]!, 1, {
      title: 'One',
      description: '<p>1</p>',
      priority: 'high',
      unique_identifier: `${tool}-one`,
    }),
    await card(groups[0]!, 2, { title: 'Two', tour_key: 'tour' }),
    await card(groups[1]!, 1, { title: 'Three', status: 'blocked' }),
  ];
  const projects = [await givenProject({ tools: [tool] }), await givenProject({ tools: [tool, 'another'] })];
  return { ...world, tool, board, groups, cards, projects, without: await givenProject({ tools: ['another'] }) };
}

/** The copy of the master board in a project, including a deleted one. */
export async function boardIn(project: TestProject, { board }: Template): Promise<any> {
  const [copy] = await query(
    await testDb(),
    sql`select * from boards where project_id = ${project.id} and master_board_id = ${board}`,
  );
  return copy;
}

/** The copies of the master groups in a project in order, including deleted ones. */
export async function groupsIn(project: TestProject, { board }: Template): Promise<any[]> {
  return query(
    await testDb(),
    sql`
      select g.* from groups g join groups m on m.id = g.master_group_id
      where g.project_id = ${project.id} and m.board_id = ${board} order by g.position, g.id`,
  );
}

export const titlesIn = async (project: TestProject, template: Template) =>
  (await groupsIn(project, template)).map(({ title }) => title);

/** The copies of the cards of a template in a project, including deleted ones. */
export async function copiesIn(project: TestProject, { board }: Template): Promise<any[]> {
  return query(
    await testDb(),
    sql`
      select c.*, g.title as group_title, g.position as group_position, b.title as board_title
      from cards c join cards m on m.id = c.master_card_id join groups mg on mg.id = m.group_id
      join groups g on g.id = c.group_id join boards b on b.id = g.board_id
      where c.project_id = ${project.id} and mg.board_id = ${board} order by g.position, c.position`,
  );
}

/** The outcomes of the projects of a template, of those of all tests. */
export const only = (projects: { project_id: number }[], { projects: mine, without }: Template) =>
  projects.filter(({ project_id }) => [...mine, without].some(({ id }) => id === project_id));

/** Reads all pages of a preview or report. */
export const everyPage = async (
  ask: (page: { cursor: string | null; limit: number }) => Promise<{ projects: any[]; next_cursor: string | null }>,
) => {
  const all: any[] = [];
  let cursor: string | null = null;
  do {
    const page: { projects: any[]; next_cursor: string | null } = await ask({ cursor, limit: 200 });
    all.push(...page.projects);
    cursor = page.next_cursor;
  } while (cursor);
  return all;
};

/** What the last run on the board did to the projects of the template. */
export async function reportOf(template: Template) {
  const { templateRuns } = template.asSuperadmin.rpc;
  const { runs } = await templateRuns.list.query({ board_id: template.board, limit: 1 });
  return only(await everyPage((page) => templateRuns.report.query({ id: runs[0]!.id, ...page })), template);
}
