import { sql } from 'kysely';
import { expect } from 'vitest';
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { type Given, inputFor } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import type { TestCaller } from '../harness/caller.ts';
import { codeAt, SECRET } from '../harness/codes.ts';
import { allowedCaller, givenStartState } from '../harness/startStates.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenInvitation,
  givenMasterBoard,
  givenTag,
  givenToken,
  givenWorld,
  NOWHERE,
  PASSWORD,
  stored,
  testDb,
  type World,
} from '../harness/world.ts';

/** A call of each operation that changes something, and further rows with it. */
export async function givenFullCall(procedure: Procedure) {
  const world = await givenWorld();
  const given = await givenStartState(procedure, world);
  const example = inputFor(procedure, given);
  const more = await FURTHER[procedure.name]?.(world, { ...given, ...example });
  const input = { ...example, ...more };
  const caller = allowedCaller(world, procedure);
  return { world, given, input, caller, userId: await userOf(world, caller, input) };
}

/** They need an identity provider: see tests/access/sso.test.ts. */
const ELSEWHERE = ['auth.startSso', 'auth.finishSso'];

export const mutations = procedures.filter(({ type, name }) => type === 'mutation' && !ELSEWHERE.includes(name));

const change = async (statement: ReturnType<typeof sql>): Promise<undefined> => {
  await query(await testDb(), statement);
};

type Make = (position: number) => Promise<unknown>;

/** Puts a row first, where three siblings are in the way. */
const amongSiblings = async (make: Make): Promise<Given> => {
  for (const position of [1, 2, 3]) await make(position);
  return { position: 1 };
};
/** The same for the first row of a list. */
const reorderedAmong = async (list: string, given: Given, make: Make): Promise<Given> => {
  const position = await amongSiblings(make);
  return { [list]: [{ id: (given[list] as Given[])[0]!.id, ...position }] };
};

const boardsOf =
  (project: World['project']): Make =>
  (position) =>
    givenBoard(project, { position });
const groupsOf =
  (project: World['project'], board: unknown): Make =>
  (position) =>
    givenGroup(project, board as number, { position });
const tagsOf =
  (project: World['project']): Make =>
  (position) =>
    givenTag(project, { position });
const masterBoards: Make = (position) => givenBoard(NOWHERE, { is_master: true, position });

/** Makes a start state one that the call changes, since some have the result of their call already, and adds rows. Returns more input. */
const FURTHER: Record<string, (world: World, given: Given) => Promise<Given | undefined>> = {
  'account.setDefaultProject': ({ users }) =>
    change(sql`update users set default_project_id = null where id = ${users.superadmin.id}`),
  'account.confirmSecondFactor': async ({ asSuperadmin }) => {
    const { secret } = await asSuperadmin.rpc.account.startSecondFactor.mutate({ password: PASSWORD });
    return { code: codeAt(0, secret) };
  },
  'account.dropSecondFactor': protectCaller,
  'account.renewRecoveryCodes': protectCaller,
  'groups.configure': async () => ({ is_active: false }),
  'tour.restart': async ({ asSuperadmin }): Promise<undefined> => {
    await asSuperadmin.rpc.tour.dismissAll.mutate();
  },
  // Without `until`, each hold ends later than the one before.
  'templates.hold': async () => ({ until: new Date(Date.now() + 86_400_000).toISOString() }),
  'templates.unhold': async ({ asSuperadmin }, { board_id }): Promise<undefined> => {
    await asSuperadmin.rpc.templates.hold.mutate({ board_id: Number(board_id) });
  },
  'templates.unpin': ({ project }, { board_id }) =>
    change(sql`
      insert into project_templates (project_id, board_id, pinned)
      select ${project.id}, master_board_id, '{1}' from boards where id = ${board_id}`),
  'themes.undoDeprecation': (_, { version_id }) =>
    change(sql`update theme_versions set theme_status = 'deprecated', deprecated_at = now() where id = ${version_id}`),
  'themes.approveVersion': (_, { version_id }) =>
    change(sql`
      update theme_versions set approval_status = 'pending', theme_status = 'draft', published_at = null where id = ${version_id}`),
  'themes.publishVersion': (_, { version_id }) =>
    change(sql`update theme_versions set theme_status = 'draft', published_at = null where id = ${version_id}`),
  'users.signOut': async (_, { id }): Promise<undefined> => {
    await givenToken({ id: Number(id), email: '' });
  },
  'users.dropSecondFactor': (_, { id }) => change(sql`update users set totp_secret = ${SECRET} where id = ${id}`),
  'boards.create': ({ project }) => amongSiblings(boardsOf(project)),
  'boards.update': ({ project }) => amongSiblings(boardsOf(project)),
  'boards.reorder': ({ project }, given) => reorderedAmong('boards', given, boardsOf(project)),
  'boards.delete': ({ project, users }, { id }) => fillBoard(project, id as number, users.member),
  'groups.create': ({ project }, { board_id }) => amongSiblings(groupsOf(project, board_id)),
  'groups.update': async ({ project }, { id }) => amongSiblings(groupsOf(project, await boardOf(id))),
  'groups.reorder': async ({ project }, given) => {
    const board = await boardOf((given.groups as Given[])[0]!.id);
    return reorderedAmong('groups', given, groupsOf(project, board));
  },
  'groups.delete': async ({ project, users }, { id }): Promise<undefined> => {
    const card = await givenCard(project, { group_id: id });
    await givenComment(project, card, users.member);
  },
  'cards.move': async ({ project }, { id }): Promise<Given> => {
    const group_id = await givenGroup(project, await givenBoard(project));
    for (const position of [4, 5, 9]) await givenCard(project, { group_id, position });
    return { id, group_id, position: 2 };
  },
  'cards.delete': async ({ project, users }, { id }): Promise<undefined> => {
    await givenComment(project, id as number, users.member);
  },
  'comments.delete': async ({ project, users }, { id }): Promise<undefined> => {
    const { card_id } = await stored('comments', id as number);
    const reply = (parent_comment_id: unknown) =>
      givenComment(project, card_id, users.member, { parent_comment_id, root_comment_id: id, depth: 1 });
    await reply(await reply(id));
  },
  'tags.create': ({ project }) => amongSiblings(tagsOf(project)),
  'tags.update': ({ project }) => amongSiblings(tagsOf(project)),
  'tags.delete': async ({ project }, { id: tag_id }): Promise<undefined> => {
    await givenCard(project, { tag_id });
    await givenCard(project, { tag_id, deleted_at: new Date() });
  },
  'tags.restore': async ({ project, asMember }): Promise<Given> => {
    const id = await givenTag(project);
    await givenCard(project, { tag_id: id });
    await asMember.rpc.tags.delete.mutate({ id });
    return { id };
  },
  'boards.restore': async ({ project, users, asMember }): Promise<Given> => {
    const id = await givenBoard(project);
    await fillBoard(project, id, users.member);
    await asMember.rpc.boards.delete.mutate({ id });
    return { id };
  },
  'groups.restore': async ({ project, asMember }): Promise<Given> => {
    const id = await givenGroup(project, await givenBoard(project));
    await givenCard(project, { group_id: id });
    await asMember.rpc.groups.delete.mutate({ id });
    return { id };
  },
  'masterBoards.restore': async ({ asSuperadmin }): Promise<Given> => {
    const { board: id } = await givenMasterBoard();
    await asSuperadmin.rpc.masterBoards.delete.mutate({ id });
    return { id };
  },
  'members.remove': async ({ project }, { user_id: owner_id }): Promise<undefined> => {
    await givenCard(project, { owner_id });
    await givenCard(project, { owner_id, deleted_at: new Date() });
    await change(sql`update users set default_project_id = ${project.id} where id = ${owner_id}`);
  },
  'members.leave': async ({ users }, { project_id }): Promise<undefined> => {
    const { id, platform_id } = await stored('projects', project_id as number);
    await givenCard({ id, platform_id }, { owner_id: users.member.id });
  },
  'members.add': async (_, { project_id, email }): Promise<undefined> => {
    await givenInvitation({ id: project_id as number, platform_id: 0 }, { email: String(email) });
  },
  'masterBoards.create': () => amongSiblings(masterBoards),
  'masterBoards.update': () => amongSiblings(masterBoards),
  'masterBoards.reorder': (_, given) => reorderedAmong('boards', given, masterBoards),
  'masterGroups.reorder': (_, given) =>
    reorderedAmong('groups', given, (position) =>
      givenGroup(NOWHERE, given.board_id as number, { is_master: true, position }),
    ),
  'masterCards.reorder': (_, given) =>
    reorderedAmong('cards', given, (position) =>
      givenCard(NOWHERE, { is_master: true, group_id: given.group_id, position }),
    ),
  'masterCards.update': async ({ project }, { id, unique_identifier }): Promise<undefined> => {
    const { card: deleted } = await givenMasterBoard({ card: { deleted_at: new Date() } });
    await givenCard(project, { master_card_id: id });
    await givenCard(project, { master_card_id: deleted, unique_identifier });
  },
  'masterCards.delete': async () => ({ delete_from_projects: true }),
  'projects.create': async (): Promise<Given> => ({ tools: [await givenTemplateOfTool()] }),
  'projects.update': async (): Promise<Given> => ({ tools: [await givenTemplateOfTool()] }),
};

async function protectCaller({ users }: World): Promise<Given> {
  await change(sql`update users set totp_secret = ${SECRET} where id = ${users.superadmin.id}`);
  return { code: codeAt(0) };
}

async function fillBoard(
  project: World['project'],
  board: number,
  author: World['users']['member'],
): Promise<undefined> {
  const group_id = await givenGroup(project, board);
  const card = await givenCard(project, { group_id });
  await givenComment(project, card, author);
}

const boardOf = async (group: unknown): Promise<number> => (await stored('groups', group as number)).board_id;

/** A template for projects with a tool of its own. */
async function givenTemplateOfTool(): Promise<string> {
  const tool_key = `tool-${Math.random().toString(36).slice(2)}`;
  await givenMasterBoard({ board: { tool_key } });
  return tool_key;
}

/** The user who calls; at sign-in, the one who signs in; with a link, anybody. */
async function userOf({ users, asMember, asNobody }: World, caller: TestCaller, { email }: Given): Promise<number> {
  if (caller !== asNobody) return (caller === asMember ? users.member : users.superadmin).id;
  const [user] = await query(await testDb(), sql<{ id: number }>`select id from users where email = ${email}`);
  return user?.id ?? expect.any(Number);
}
