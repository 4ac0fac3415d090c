import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { procedures } from '../server/procedures.ts';
import { makeCaller, type TestCaller } from './harness/caller.ts';
import { databaseUrl, testService } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMember,
  givenProduct,
  givenProject,
  givenTag,
  givenTheme,
  givenThemeVersion,
  givenToken,
  givenUser,
  givenWorld,
  insert,
  NOWHERE,
  PASSWORD,
  type TestProject,
  type TestUser,
  type World,
} from './harness/world.ts';

/** Who may call what, on whose rows: every procedure has a row here, or the suite fails. */

type Make = (project: TestProject, state: object, author: TestUser) => Promise<number>;

const board: Make = (project, state) => givenBoard(project, state);
const group: Make = async (project, state) => givenGroup(project, await givenBoard(project), state);
const card: Make = (project, state) => givenCard(project, state);
const tag: Make = (project, state) => givenTag(project, state);
const comment: Make = async (project, state, author) => givenComment(project, await givenCard(project), author, state);

/** Templates are of no project: nobody's own, and nobody else's. */
const IS_MASTER = { is_master: true };
const masterBoard: Make = (_, state) => givenBoard(NOWHERE, { ...IS_MASTER, tool_key: 'nobody-has-this', ...state });
const masterGroup: Make = async (project, state, author) =>
  givenGroup(NOWHERE, await masterBoard(project, {}, author), { ...IS_MASTER, ...state });
const masterCard: Make = async (project, state, author) =>
  givenCard(NOWHERE, { ...IS_MASTER, group_id: await masterGroup(project, {}, author), ...state });
const templateRun: Make = async (project, state, author) =>
  insert('template_runs', { kind: 'sync', board_id: await masterBoard(project, state, author) });

/** What superadmins provide: theirs whoever it is of, and never deleted. */
const platform: Make = async () => (await givenProject()).platform_id;
const otherProject: Make = async () => (await givenProject()).id;
const user: Make = async () => (await givenUser()).id;
const member: Make = async (project) => (await givenUser({ project })).id;

const theme: Make = (project) => givenTheme(project);
const version: Make = (project) => givenThemeVersion(project);
const pendingVersion: Make = (project) =>
  givenThemeVersion(project, { approval_status: 'pending', theme_status: 'draft' });

const OF_NO_PROJECT = new Set([
  masterBoard,
  masterGroup,
  masterCard,
  templateRun,
  platform,
  otherProject,
  user,
  member,
]);
const NEVER_DELETED = new Set([templateRun, platform, otherProject, user, member, theme, version, pendingVersion]);
/** Owned by a platform: a superadmin may act on anybody's. */
const OF_PLATFORM = new Set([theme, version, pendingVersion]);

type Row = {
  /** The least that may call it. */
  takes: 'anyone' | 'signedIn' | 'viewer' | 'member' | 'owner' | 'superadmin';
  /** What the id in the input names; a procedure without one acts in the project as a whole. */
  on?: Make;
  input?: (id: number, world: World & { product: string }) => object | undefined;
  /** What an id is answered that names nothing, or something deleted. */
  missing?: 404 | 422;
  /** What is answered when nothing stands in the way; a refusal where the start state lacks what the rule asks for. */
  success?: 200 | 201 | 400 | 404;
  /** The caller's token is of no use afterwards: every call needs one of its own. */
  endsSession?: boolean;
};

const rows: Record<string, Row> = {
  'auth.authenticate': { takes: 'anyone', input: (_, { users }) => ({ email: users.owner.email, password: PASSWORD }) },
  'account.whoAmI': { takes: 'signedIn' },
  'account.signOut': { takes: 'signedIn', endsSession: true },
  'account.signOutEverywhere': { takes: 'signedIn', endsSession: true },
  'account.changePassword': {
    takes: 'signedIn',
    input: () => ({ password: PASSWORD, new_password: PASSWORD }),
    endsSession: true,
  },
  'account.startSecondFactor': { takes: 'signedIn', input: () => ({ password: PASSWORD }) },
  'account.confirmSecondFactor': { takes: 'signedIn', input: () => ({ code: '123456' }), success: 400 },
  'account.dropSecondFactor': {
    takes: 'signedIn',
    input: () => ({ password: PASSWORD, code: '123456' }),
    success: 400,
  },
  'account.renewRecoveryCodes': {
    takes: 'signedIn',
    input: () => ({ password: PASSWORD, code: '123456' }),
    success: 400,
  },
  'projects.listOwn': { takes: 'signedIn', input: () => ({}) },
  'boards.get': { takes: 'viewer', on: board, input: (id) => ({ id }) },
  'boards.list': { takes: 'viewer', input: () => ({}) },
  'boards.create': { takes: 'member', input: () => ({ title: 'x' }) },
  'boards.update': { takes: 'member', on: board, input: (id) => ({ id, title: 'x' }) },
  'boards.reorder': { takes: 'member', on: board, input: (id) => ({ boards: [{ id, position: 1 }] }) },
  'boards.delete': { takes: 'member', on: board, input: (id) => ({ id }) },
  'groups.create': { takes: 'member', on: board, input: (id) => ({ board_id: id, title: 'x' }) },
  'groups.update': { takes: 'member', on: group, input: (id) => ({ id, title: 'x' }) },
  'groups.reorder': { takes: 'member', on: group, input: (id) => ({ groups: [{ id, position: 1 }] }) },
  'groups.delete': { takes: 'member', on: group, input: (id) => ({ id }) },
  'cards.create': {
    takes: 'member',
    on: group,
    input: (id) => ({ title: 'x', group_id: id }),
    missing: 422,
    success: 201,
  },
  'cards.get': { takes: 'viewer', on: card, input: (id) => ({ id }) },
  'cards.list': { takes: 'viewer', input: () => ({}) },
  'cards.update': { takes: 'member', on: card, input: (id) => ({ id, title: 'x' }) },
  'cards.move': { takes: 'member', on: card, input: (id) => ({ id, group_id: null }) },
  'cards.snooze': { takes: 'member', on: card, input: (id) => ({ id, until: '2030-01-01' }) },
  'cards.delete': { takes: 'member', on: card, input: (id) => ({ id }) },
  'comments.create': { takes: 'member', on: card, input: (id) => ({ card_id: id, comment: 'x' }), success: 201 },
  'comments.list': { takes: 'viewer', on: card, input: (id) => ({ card_id: id }) },
  'comments.listReplies': { takes: 'viewer', on: comment, input: (id) => ({ id }) },
  'comments.markRead': { takes: 'member', on: comment, input: (id) => ({ id }) },
  'comments.delete': { takes: 'member', on: comment, input: (id) => ({ id }) },
  'tags.create': { takes: 'member', input: () => ({ name: 'x' }), success: 201 },
  'tags.list': { takes: 'viewer', input: () => ({}) },
  'tags.update': { takes: 'member', on: tag, input: (id) => ({ id, name: 'x' }) },
  'tags.delete': { takes: 'member', on: tag, input: (id) => ({ id }) },
  'tour.dismissAll': { takes: 'viewer' },
  'masterBoards.list': { takes: 'superadmin' },
  'masterBoards.create': { takes: 'superadmin', input: () => ({ title: 'x' }) },
  'masterBoards.update': { takes: 'superadmin', on: masterBoard, input: (id) => ({ id, title: 'x' }) },
  'masterBoards.reorder': { takes: 'superadmin', on: masterBoard, input: (id) => ({ boards: [{ id, position: 1 }] }) },
  'masterBoards.delete': { takes: 'superadmin', on: masterBoard, input: (id) => ({ id }) },
  'masterBoards.sync': { takes: 'superadmin', on: masterBoard, input: (id) => ({ board_id: id }) },
  'masterBoards.previewSync': { takes: 'superadmin', on: masterBoard, input: (id) => ({ board_id: id }) },
  'masterGroups.create': {
    takes: 'superadmin',
    on: masterBoard,
    input: (id) => ({ board_id: id, title: 'x' }),
    success: 201,
  },
  'masterGroups.update': { takes: 'superadmin', on: masterGroup, input: (id) => ({ id, title: 'x' }) },
  'masterGroups.reorder': {
    takes: 'superadmin',
    on: masterBoard,
    input: (id) => ({ board_id: id, groups: [] }),
    missing: 422,
  },
  'masterGroups.delete': { takes: 'superadmin', on: masterGroup, input: (id) => ({ id }) },
  'masterCards.create': {
    takes: 'superadmin',
    on: masterGroup,
    input: (id) => ({ group_id: id, title: 'x' }),
    success: 201,
  },
  'masterCards.update': { takes: 'superadmin', on: masterCard, input: (id) => ({ id, title: 'x' }) },
  'masterCards.reorder': { takes: 'superadmin', on: masterGroup, input: (id) => ({ group_id: id, cards: [] }) },
  'masterCards.push': { takes: 'superadmin', on: masterCard, input: (id) => ({ card_id: id }) },
  'masterCards.previewPush': { takes: 'superadmin', on: masterCard, input: (id) => ({ card_id: id }) },
  'masterCards.delete': { takes: 'superadmin', on: masterCard, input: (id) => ({ id }) },
  'templateRuns.list': { takes: 'superadmin', input: () => ({}) },
  'templateRuns.report': { takes: 'superadmin', on: templateRun, input: (id) => ({ id }) },
  'subscriptions.upgradeTrial': {
    takes: 'owner',
    // The product decides: the platform is always the caller's own.
    input: (_, { product }) => ({ product, plan: 'pro', period: 'month' }),
    missing: 404,
    success: 404,
  },
  'subscriptions.setTrial': {
    takes: 'superadmin',
    on: platform,
    input: (id, { product }) => ({ platform_id: id, product }),
    missing: 422,
  },
  'subscriptions.list': { takes: 'superadmin', input: () => ({}) },
  'plans.set': {
    takes: 'superadmin',
    input: (_, { product }) => ({ product, plan: 'x', period: 'year', price_cents: 1 }),
  },
  'plans.list': { takes: 'superadmin', input: () => ({}) },
  'themes.deprecateVersion': { takes: 'owner', on: version, input: (version_id) => ({ version_id }) },
  'themes.deprecateWithNotice': {
    takes: 'owner',
    on: version,
    input: (version_id) => ({ version_id, reason: 'x' }),
  },
  'themes.undoDeprecation': { takes: 'owner', on: version, input: (version_id) => ({ version_id }) },
  'themes.publishVersion': { takes: 'owner', on: version, input: (version_id) => ({ version_id }) },
  'themes.approveVersion': { takes: 'superadmin', on: version, input: (version_id) => ({ version_id }) },
  'themes.rejectVersion': { takes: 'superadmin', on: pendingVersion, input: (version_id) => ({ version_id }) },
  'themes.submitVersion': { takes: 'owner', on: theme, input: (theme_id) => ({ theme_id, version: randomUUID() }) },
  'themes.create': {
    takes: 'superadmin',
    on: platform,
    input: (id) => ({ platform_id: id, name: 'x' }),
    missing: 422,
  },
  'themes.list': { takes: 'owner', input: () => ({}) },
  'themes.listVersions': { takes: 'owner', input: () => ({}) },
  'platforms.create': { takes: 'superadmin', input: () => ({ name: 'x' }) },
  'platforms.update': { takes: 'superadmin', on: platform, input: (id) => ({ id, name: 'x' }) },
  'platforms.list': { takes: 'superadmin', input: () => ({}) },
  'projects.create': {
    takes: 'superadmin',
    on: platform,
    input: (id) => ({ platform_id: id, name: 'x' }),
    missing: 422,
  },
  'projects.update': { takes: 'superadmin', on: otherProject, input: (id) => ({ id, name: 'x' }) },
  'projects.list': { takes: 'superadmin', input: () => ({}) },
  'users.create': {
    takes: 'superadmin',
    input: () => ({ name: 'x', email: `${randomUUID()}@example.test`, password: PASSWORD }),
  },
  'users.update': { takes: 'superadmin', on: user, input: (id) => ({ id, name: 'x' }) },
  'users.list': { takes: 'superadmin', input: () => ({}) },
  'users.signOut': { takes: 'superadmin', on: user, input: (id) => ({ id }) },
  'users.dropSecondFactor': { takes: 'superadmin', on: user, input: (id) => ({ id }) },
  'members.set': {
    takes: 'superadmin',
    on: user,
    input: (id, { project }) => ({ project_id: project.id, user_id: id, role: 'viewer' }),
    missing: 422,
  },
  'members.remove': {
    takes: 'superadmin',
    on: member,
    input: (id, { project }) => ({ project_id: project.id, user_id: id }),
  },
  'members.list': { takes: 'superadmin', input: (_, { project }) => ({ project_id: project.id }) },
};

const CALLERS = ['Nobody', 'Viewer', 'Member', 'Owner', 'Outsider', 'Superadmin'] as const;
type CallerName = (typeof CALLERS)[number];

const RANKS = ['anyone', 'signedIn', 'viewer', 'member', 'owner', 'superadmin'];
const RANK_OF: Record<CallerName, string> = {
  Nobody: 'anyone',
  Viewer: 'viewer',
  Member: 'member',
  Owner: 'owner',
  Outsider: 'owner',
  Superadmin: 'superadmin',
};

const ID_KINDS = ['own', 'foreign', 'deleted', 'unknown'] as const;
type IdKind = (typeof ID_KINDS)[number];

function isAdmitted({ takes }: Row, caller: CallerName): boolean {
  return RANKS.indexOf(RANK_OF[caller]) >= RANKS.indexOf(takes);
}

/** `own` is of the project that all but the outsider act in; `foreign` is of the outsider's. */
function expectedStatus(row: Row, caller: CallerName, kind: IdKind): number {
  const { takes, on, missing = 404, success = 200 } = row;
  if (takes !== 'anyone' && caller === 'Nobody') return 401;
  if (!isAdmitted(row, caller)) return 403;
  if (!on) return success;
  if (kind === 'unknown' || (kind === 'deleted' && !NEVER_DELETED.has(on))) return missing;
  if (on === member && kind === 'foreign') return missing;
  if (OF_NO_PROJECT.has(on) || (OF_PLATFORM.has(on) && caller === 'Superadmin')) return success;
  return (kind !== 'foreign') === (caller !== 'Outsider') ? success : 403;
}

async function overRest(caller: TestCaller, path: string, input: object | undefined): Promise<number> {
  return (await caller.post(path, input)).status;
}

async function overRpc(caller: TestCaller, name: string, type: string, input: object | undefined): Promise<number> {
  const [noun, verb] = name.split('.') as [string, string];
  return (caller.rpc as any)[noun][verb][type === 'query' ? 'query' : 'mutate'](input).then(
    () => 200,
    (error: any) => error.data.httpStatus,
  );
}

describe('every procedure', () => {
  it('has a row in this table', () => {
    expect(Object.keys(rows).sort()).toEqual(procedures.map(({ name }) => name).sort());
  });
});

describe.each(procedures.map((procedure) => [procedure.name, procedure] as const))('%s', (name, { type, rest }) => {
  it('answers each caller, on each kind of id, on both surfaces, with the status that is expected', async () => {
    const row = rows[name]!;
    const world = { ...(await givenWorld()), product: await givenProduct() };
    const { project, otherProject, users } = world;
    const { url } = await testService();
    const callerFor = async (caller: CallerName) => {
      const known = world[`as${caller}`];
      if (!row.endsSession || caller === 'Nobody') return known;
      return makeCaller(url, await givenToken(users[caller.toLowerCase() as keyof World['users']]));
    };

    const makeId = async (kind: IdKind, author: TestUser) => {
      if (!row.on || kind === 'unknown') return 2147483647;
      if (kind === 'deleted' && !NEVER_DELETED.has(row.on)) return row.on(project, { deleted_at: new Date() }, author);
      return row.on(kind === 'foreign' ? otherProject : project, {}, author);
    };

    // What is refused changes nothing: all who are refused can be refused the same.
    const shared = new Map<IdKind, Promise<number>>();
    const sharedId = (kind: IdKind) => {
      if (!shared.has(kind)) shared.set(kind, makeId(kind, users.owner));
      return shared.get(kind)!;
    };

    const unexpected: string[] = [];
    for (const caller of CALLERS) {
      const author = caller === 'Member' ? users.member : users.owner;
      // Whoever is refused for who they are is refused whatever they name.
      const kinds = row.on && isAdmitted(row, caller) ? ID_KINDS : (['own'] as const);
      for (const kind of kinds) {
        const expected = expectedStatus(row, caller, kind);
        const check = (surface: string, status: number, wanted: number) => {
          if (status !== wanted) unexpected.push(`${surface}, ${caller}, ${kind}: ${status} instead of ${wanted}`);
        };
        const input = async () => row.input?.(await (expected < 400 ? makeId(kind, author) : sharedId(kind)), world);
        // The surfaces are the same on both kinds of database: one of them is enough for the second.
        if (rest && !databaseUrl)
          check('REST', await overRest(await callerFor(caller), rest.path, await input()), expected);
        const overRpcExpected = expected === 201 ? 200 : expected;
        check('RPC', await overRpc(await callerFor(caller), name, type, await input()), overRpcExpected);
      }
    }

    expect(unexpected).toEqual([]);
  });
});

describe('a project', () => {
  it('is chosen for the whole of a request: rows of another one of the user are refused until it is chosen', async () => {
    const { asMember, users } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.member, second, 'member');
    const id = await givenCard(second);

    expect((await asMember.post('/services/operations/v1/operations/cards/delete', { id })).status).toBe(403);
    expect((await asMember.in(second.id).post('/services/operations/v1/operations/cards/delete', { id })).status).toBe(
      200,
    );
  });
});
