import { describe, expect, it } from 'vitest';
import { TemplateRun } from '../server/entities/templateRun.ts';
import { procedures } from '../server/http/procedures.ts';
import type { TestCaller } from './harness/caller.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMember,
  givenProject,
  givenTag,
  givenWorld,
  NOWHERE,
  PASSWORD,
  type TestProject,
  type TestUser,
  testEm,
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
  (await testEm()).insert(TemplateRun, { kind: 'sync', board_id: await masterBoard(project, state, author) });
const OF_NO_PROJECT = new Set([masterBoard, masterGroup, masterCard, templateRun]);

type Row = {
  /** The least that may call it. */
  takes: 'anyone' | 'signedIn' | 'viewer' | 'member' | 'owner' | 'superadmin';
  /** What the id in the input names; a procedure without one acts in the project as a whole. */
  on?: Make;
  input?: (id: number, world: World) => object | undefined;
  /** What an id is answered that names nothing, or something deleted. */
  missing?: 404 | 422;
  success?: 200 | 201;
};

const rows: Record<string, Row> = {
  'auth.authenticate': { takes: 'anyone', input: (_, { users }) => ({ email: users.owner.email, password: PASSWORD }) },
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

/** `own` is of the project that all but the outsider act in; `foreign` is of the outsider's. */
function expectedStatus(row: Row, caller: CallerName, kind: IdKind): number {
  const { takes, on, missing = 404, success = 200 } = row;
  if (takes !== 'anyone' && caller === 'Nobody') return 401;
  if (RANKS.indexOf(RANK_OF[caller]) < RANKS.indexOf(takes)) return 403;
  if (!on) return success;
  if (OF_NO_PROJECT.has(on))
    return kind === 'unknown' || (kind === 'deleted' && on !== templateRun) ? missing : success;
  if (kind === 'deleted' || kind === 'unknown') return missing;
  return (kind === 'own') === (caller !== 'Outsider') ? success : 403;
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
    const world = await givenWorld();
    const { project, otherProject, users } = world;

    const makeId = async (kind: IdKind, author: TestUser) => {
      if (!row.on || kind === 'unknown') return 2147483647;
      if (kind === 'deleted') return row.on(project, { deleted_at: new Date() }, author);
      return row.on(kind === 'own' ? project : otherProject, {}, author);
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
      for (const kind of row.on ? ID_KINDS : (['own'] as const)) {
        const expected = expectedStatus(row, caller, kind);
        const check = (surface: string, status: number, wanted: number) => {
          if (status !== wanted) unexpected.push(`${surface}, ${caller}, ${kind}: ${status} instead of ${wanted}`);
        };
        const input = async () => row.input?.(await (expected < 400 ? makeId(kind, author) : sharedId(kind)), world);
        if (rest) check('REST', await overRest(world[`as${caller}`], rest.path, await input()), expected);
        check('RPC', await overRpc(world[`as${caller}`], name, type, await input()), expected === 201 ? 200 : expected);
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
