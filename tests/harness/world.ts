import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { type EntityManager, query } from '../../server/database/query.ts';
import { Board } from '../../server/entities/board.ts';
import { Card } from '../../server/entities/card.ts';
import { Comment } from '../../server/entities/comment.ts';
import { Group } from '../../server/entities/group.ts';
import { Platform, Project, ProjectTool } from '../../server/entities/platform.ts';
import { Tag } from '../../server/entities/tag.ts';
import { Member, Session, User } from '../../server/entities/user.ts';
import { hashPassword } from '../../server/security/passwords.ts';
import type { Role } from '../../shared/user.ts';
import { makeCaller, type TestCaller } from './caller.ts';
import { type TestService, testDatabase, testService, tokens } from './service.ts';

/** Start states. Each makes rows of its own, so that no test sees those of another. */

export const PASSWORD = 'correct horse battery staple';
let passwordHash: Promise<string> | undefined;

export const testEm = async (): Promise<EntityManager> => (await testDatabase()).fork();

export type TestProject = { id: number; platform_id: number };
export type TestUser = { id: number; email: string };
export type World = {
  project: TestProject;
  otherProject: TestProject;
  users: Record<Role | 'outsider' | 'superadmin', TestUser>;
  asNobody: TestCaller;
  asViewer: TestCaller;
  asMember: TestCaller;
  asOwner: TestCaller;
  /** Owns another project, of another platform. */
  asOutsider: TestCaller;
  asSuperadmin: TestCaller;
};

/** A project with a viewer, a member and an owner, beside a project of somebody else. */
export async function givenWorld(service?: TestService): Promise<World> {
  const { url } = service ?? (await testService());
  const project = await givenProject();
  const otherProject = await givenProject();
  const users = {
    viewer: await givenUser({ project, role: 'viewer' }),
    member: await givenUser({ project, role: 'member' }),
    owner: await givenUser({ project, role: 'owner' }),
    outsider: await givenUser({ project: otherProject, role: 'owner' }),
    superadmin: await givenUser({ superadmin: true, default_project_id: project.id }),
  };
  const callerFor = async (user: TestUser) => makeCaller(url, await givenToken(user));
  return {
    project,
    otherProject,
    users,
    asNobody: makeCaller(url),
    asViewer: await callerFor(users.viewer),
    asMember: await callerFor(users.member),
    asOwner: await callerFor(users.owner),
    asOutsider: await callerFor(users.outsider),
    asSuperadmin: await callerFor(users.superadmin),
  };
}

export async function givenProject({ tools = [] as string[], is_active = true } = {}): Promise<TestProject> {
  const em = await testEm();
  const platform_id = await em.insert(Platform, { name: 'A platform' });
  const id = await em.insert(Project, { platform_id, name: 'A project', is_active });
  for (const tool_key of tools) await em.insert(ProjectTool, { project_id: id, tool_key });
  return { id, platform_id };
}

type UserState = {
  project?: TestProject;
  role?: Role;
  email?: string;
  superadmin?: boolean;
  is_active?: boolean;
  totp_secret?: string;
  default_project_id?: number;
};

export async function givenUser({ project, role = 'member', ...state }: UserState = {}): Promise<TestUser> {
  passwordHash ??= hashPassword(PASSWORD);
  const em = await testEm();
  const email = `${randomUUID()}@example.test`;
  const user = { name: 'A user', email, password_hash: await passwordHash, ...state };
  const id = await em.insert(User, user);
  if (project) await givenMember({ id, email }, project, role);
  return { id, email: user.email };
}

export async function givenMember(user: TestUser, project: TestProject, role: Role): Promise<void> {
  const em = await testEm();
  await em.insert(Member, { project_id: project.id, user_id: user.id, role });
}

export async function givenToken(user: TestUser): Promise<string> {
  const em = await testEm();
  const sessionId = await em.insert(Session, { user_id: user.id, expires_at: new Date(Date.now() + 3_600_000) });
  return tokens.sign({ userId: user.id, sessionId: String(sessionId) });
}

export async function givenBoard({ id: project_id, platform_id }: TestProject, state: object = {}): Promise<number> {
  const em = await testEm();
  return em.insert(Board, { project_id, platform_id, title: 'A board', ...state });
}

export async function givenGroup(
  { id: project_id, platform_id }: TestProject,
  board_id: number,
  state: object = {},
): Promise<number> {
  const em = await testEm();
  return em.insert(Group, { project_id, platform_id, board_id, title: 'A group', ...state });
}

export async function givenCard({ id: project_id, platform_id }: TestProject, state: object = {}): Promise<number> {
  const em = await testEm();
  return em.insert(Card, { project_id, platform_id, title: 'A card', ...state });
}

export async function givenTag({ id: project_id }: TestProject, state: object = {}): Promise<number> {
  const em = await testEm();
  return em.insert(Tag, { project_id, name: 'A tag', ...state });
}

export async function givenComment(
  { id: project_id }: TestProject,
  card_id: number,
  user: TestUser,
  state: object = {},
): Promise<number> {
  const em = await testEm();
  return em.insert(Comment, { project_id, card_id, user_id: user.id, comment: 'A comment', ...state });
}

/** Belongs to no project: a template. */
export const NOWHERE = { id: null, platform_id: null } as unknown as TestProject;

/** A master board with a group and a card in it. */
export async function givenMasterBoard(): Promise<{ board: number; group: number; card: number }> {
  const is_master = true;
  const board = await givenBoard(NOWHERE, { is_master });
  const group = await givenGroup(NOWHERE, board, { is_master });
  return { board, group, card: await givenCard(NOWHERE, { is_master, group_id: group }) };
}

/** A row as it is stored now. */
export async function stored(table: string, id: number): Promise<any> {
  const [row] = await query(await testEm(), sql`select * from ${sql.table(table)} where id = ${id}`);
  return row;
}

export async function countCards(project: TestProject): Promise<number> {
  const [row] = await query(
    await testEm(),
    sql<{ count: number }>`select count(*)::int as count from cards where project_id = ${project.id}`,
  );
  return row!.count;
}
