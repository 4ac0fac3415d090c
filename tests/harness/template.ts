import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { beforeEach } from 'vitest';
import { query } from '../../server/database/query.ts';
import { withOwnDatabase } from './service.ts';
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
  groups: [number, number];
  cards: [number, number, number];
  projects: [TestProject, TestProject, ...TestProject[]];
  without: TestProject;
};

/** A master board with two groups and three cards, two projects with its tool, and one without. */
export async function givenTemplate(): Promise<Template> {
  const world = await givenWorld();
  const tool = randomUUID();
  const is_master = true;
  const board = await givenBoard(NOWHERE, { is_master, title: 'Template', tool_key: tool });
  const groups: Template['groups'] = [
    await givenGroup(NOWHERE, board, { is_master, title: 'First', position: 1, color: 'blue' }),
    await givenGroup(NOWHERE, board, { is_master, title: 'Second', position: 2 }),
  ];
  const one = { title: 'One', description: '<p>1</p>', priority: 'high', unique_identifier: `${tool}-one` };
  const cards: Template['cards'] = [
    await givenCard(NOWHERE, { is_master, group_id: groups[0], position: 1, ...one }),
    await givenCard(NOWHERE, { is_master, group_id: groups[0], position: 2, title: 'Two', tour_key: 'tour' }),
    await givenCard(NOWHERE, { is_master, group_id: groups[1], position: 1, title: 'Three', status: 'blocked' }),
  ];
  const projects: Template['projects'] = [
    await givenProject({ tools: [tool] }),
    await givenProject({ tools: [tool, 'another'] }),
  ];
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

/** Of the groups. */
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

export const sync = ({ asSuperadmin, board }: Template) =>
  asSuperadmin.rpc.masterBoards.sync.mutate({ board_id: board });
export const pushBoard = ({ asSuperadmin, board }: Template) =>
  asSuperadmin.rpc.masterBoards.push.mutate({ board_id: board });
export const pushGroup = ({ asSuperadmin }: Template, group_id: number) =>
  asSuperadmin.rpc.masterGroups.push.mutate({ group_id });
export const pushCard = ({ asSuperadmin }: Template, card_id: number) =>
  asSuperadmin.rpc.masterCards.push.mutate({ card_id });

/** The outcomes of the projects of a template, from a preview or report. */
export async function outcomesOf(read: Promise<{ projects: any[] }>, { projects, without }: Template) {
  const mine = [...projects, without].map(({ id }) => id);
  return (await read).projects.filter(({ project_id }) => mine.includes(project_id));
}

/** What the last run on the board did to the projects of the template. */
export async function reportOf(template: Template) {
  const { templateRuns } = template.asSuperadmin.rpc;
  const { runs } = await templateRuns.list.query({ board_id: template.board, limit: 1 });
  return outcomesOf(templateRuns.report.query({ id: runs[0]!.id, limit: 200 }), template);
}

/** Syncs and pushes visit every active project: those of earlier tests would make them slow. */
export function hideEarlierProjects(): void {
  withOwnDatabase();
  beforeEach(async () => {
    await query(await testDb(), sql`update projects set is_active = false where is_active`);
  });
}
