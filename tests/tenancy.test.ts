import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { DeckhandError } from '../client/client.ts';
import { type Procedure, procedures } from '../server/api/procedures.ts';
import { query } from '../server/database/query.ts';
import { ACCESS } from '../server/domain/access/access.ts';
import { ADMIN_SCOPE, scopesFor } from '../server/domain/access/scopes.ts';
import type { Role } from '../shared/user.ts';
import { makeCaller, type TestCaller } from './harness/caller.ts';
import { countStatements, databaseUrl, testService } from './harness/service.ts';
import {
  CALLERS,
  type CallerName,
  type Given,
  givenStartState,
  hasAccess,
  inputFor,
  startStates,
  WHOSE,
  type Whose,
} from './harness/startStates.ts';
import {
  ALL_SCOPES,
  givenBoard,
  givenCard,
  givenGroup,
  givenKey,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWorld,
  type KeyState,
  type TestUser,
  testDb,
  type World,
} from './harness/world.ts';

/** Which caller gets which status on whose rows. Every procedure needs a row in the table of start states. */

function expectedStatus(name: string, caller: CallerName, whose: Whose): number {
  const { access, on, missing = 404, success = 200 } = startStates.get(name)!;
  if (access !== 'anyone' && caller === 'Nobody') return 401;
  if (!hasAccess(caller, access)) return 403;
  if (!on) return success;
  if (whose === 'unknown' || whose === 'deleted') return missing;
  if (on.owner === 'author') return caller === (whose === 'foreign' ? 'Outsider' : 'Member') ? success : 403;
  if (on.owner === 'superadmins') return caller === 'Superadmin' ? success : 403;
  if (on.owner === 'nobody' || (caller === 'Superadmin' && !on.foreign)) return success;
  return (whose === 'foreign') === (caller === 'Outsider') ? success : (on.foreign ?? 403);
}

const overRest = async (caller: TestCaller, { rest }: Procedure, input: Given) =>
  (await caller.post(rest!.path, input)).status;

const overRpc = async (caller: TestCaller, procedure: Procedure, input: Given): Promise<number> =>
  (await errorOverRpc(caller, procedure, input))?.status ?? 200;

async function errorOverRpc(caller: TestCaller, { name, type }: Procedure, input: Given) {
  const [noun, verb] = name.split('.') as [string, string];
  return (caller.rpc as any)[noun][verb][type === 'query' ? 'query' : 'mutate'](input).then(
    () => undefined,
    (error: DeckhandError) => ({ status: error.status!, reason: error.reason }),
  );
}

describe('every procedure', () => {
  it('has a start state with its access', () => {
    const accessOf = (all: [string, { access: string }][]) => all.map(([name, { access }]) => `${name}: ${access}`);

    const expected = accessOf(procedures.map((procedure) => [procedure.name, procedure]));
    expect(accessOf([...startStates]).sort()).toEqual(expected.sort());
  });
});

describe.each(procedures.map((procedure) => [procedure.name, procedure] as const))('%s', (name, procedure) => {
  it('answers every caller with the expected status, on own, foreign, deleted and unknown rows', async () => {
    const { on, access, endsSession } = startStates.get(name)!;
    const world = await givenWorld();
    const { url } = await testService();
    const callerFor = async (caller: CallerName) => {
      if (!endsSession || caller === 'Nobody') return world[`as${caller}`];
      return makeCaller(url, await givenToken(world.users[caller.toLowerCase() as keyof World['users']]));
    };
    const makeInput = async (whose: Whose) => inputFor(procedure, await givenStartState(procedure, world, whose));

    // Refused calls change nothing, so they can share their input.
    const shared = new Map<Whose, Promise<Given>>();
    const sharedInput = (whose: Whose) => {
      if (!shared.has(whose)) shared.set(whose, makeInput(whose));
      return shared.get(whose)!;
    };

    const unexpected: string[] = [];
    for (const caller of CALLERS) {
      // Callers without access are refused whatever they name.
      const named = on && hasAccess(caller, access) ? WHOSE : (['own'] as const);
      for (const whose of named.filter((whose) => whose !== 'deleted' || on?.isDeletable)) {
        const expected = expectedStatus(name, caller, whose);
        const input = () => (expected < 400 ? makeInput(whose) : sharedInput(whose));
        const check = (surface: string, status: number, wanted: number) => {
          if (status !== wanted) unexpected.push(`${surface}, ${caller}, ${whose}: ${status} instead of ${wanted}`);
        };
        // REST and RPC are compared on the embedded database; RPC alone is enough on PostgreSQL.
        if (procedure.rest && !databaseUrl)
          check('REST', await overRest(await callerFor(caller), procedure, await input()), expected);
        const overRpcExpected = expected === 201 ? 200 : expected;
        check('RPC', await overRpc(await callerFor(caller), procedure, await input()), overRpcExpected);
      }
    }

    expect(unexpected).toEqual([]);
  });
});

const onRowsOfProjects = procedures.filter(({ name }) => {
  const { on } = startStates.get(name)!;
  return on?.owner === 'project' && !on.foreign;
});

const forCallers = procedures.filter(({ access }) => access !== 'anyone');

describe.each(forCallers.map((procedure) => [procedure.name, procedure] as const))('%s', (_, procedure) => {
  it('with a key: needs its scopes and its project, and that the key is neither expired nor revoked', async () => {
    const world = await givenWorld();
    const { url } = await testService();
    const { project, otherProject, users } = world;
    const scopes = scopesFor(procedure);
    const ofBoth = await givenUser({ project, role: 'owner' });
    await givenMember(ofBoth, otherProject, 'owner');
    const { on } = startStates.get(procedure.name)!;
    const call = async (key: KeyState, user = users.superadmin, chosen?: number) => {
      const author = on?.owner === 'author' || user === ofBoth ? user : users.member;
      const caller = makeCaller(url, (await givenKey(user, key)).secret, chosen);
      const given = await givenStartState(procedure, { ...world, users: { ...users, member: author } });
      const error = await errorOverRpc(caller, procedure, inputFor(procedure, given));
      return error ? `${error.status} ${error.reason}` : 'done';
    };
    const isForSuperadmins = procedure.access === 'superadmin';
    const past = new Date('2020-01-01');
    const ofOtherProject = { project_id: otherProject.id };

    const outcomes = {
      expired: await call({ expires_at: past }),
      revoked: await call({ revoked_at: past }),
      withoutScope: await call({ scopes: ALL_SCOPES.filter((scope) => scope !== scopes?.[0]) }),
      withScopes: await call({ scopes: scopes ?? ALL_SCOPES }, isForSuperadmins ? users.superadmin : ofBoth),
      ofOtherProject: await call(ofOtherProject, users.superadmin, project.id),
      superadminWithoutAdmin: await call({ scopes: ALL_SCOPES.filter((scope) => scope !== ADMIN_SCOPE) }),
    };

    const refused = scopes ? undefined : '403 key_not_allowed';
    expect(outcomes).toEqual({
      expired: '401 not_signed_in',
      revoked: '401 not_signed_in',
      withoutScope: refused ?? '403 scope_missing',
      withScopes: refused ?? 'done',
      ofOtherProject: refused ?? '403 no_project_access',
      superadminWithoutAdmin:
        refused ??
        (isForSuperadmins
          ? '403 scope_missing'
          : 'role' in ACCESS[procedure.access]
            ? '403 no_project_access'
            : 'done'),
    });
    if (onRowsOfProjects.includes(procedure)) expect(await call(ofOtherProject, ofBoth)).toBe('403 other_project');
    if (isForSuperadmins) expect(await call(ofOtherProject)).toBe('403 not_a_superadmin');
  });
});

describe.each(onRowsOfProjects.map((procedure) => [procedure.name, procedure] as const))('%s', (_, procedure) => {
  it('acts in the project of the row, with the role there, unless X-Project-Id selects another project', async () => {
    const world = await givenWorld();
    const { url } = await testService();
    const elsewhere = await givenProject();
    const { role: needed } = ACCESS[procedure.access] as { role: Role };
    const call = async (role: Role | undefined, chosen?: number) => {
      const user = await givenUser({ project: elsewhere, role: 'owner', default_project_id: elsewhere.id });
      if (role) await givenMember(user, world.project, role);
      const caller = makeCaller(url, await givenToken(user), chosen);
      const input = inputFor(
        procedure,
        await givenStartState(procedure, { ...world, users: { ...world.users, member: user } }),
      );
      return overRpc(caller, procedure, input);
    };

    const statuses = {
      without: await call(undefined),
      lower: needed === 'viewer' ? 403 : await call('viewer'),
      enough: await call(needed),
      selected: await call(needed, world.project.id),
      otherSelected: await call(needed, elsewhere.id),
    };

    expect(statuses).toEqual({ without: 403, lower: 403, enough: 200, selected: 200, otherSelected: 403 });
  });
});

describe('a call on a row of another project than the default one', () => {
  it('needs two statements at most, although the role in the default project is too low', async () => {
    const { url } = await testService();
    const [low, high] = [await givenProject(), await givenProject()];
    const user = await givenUser({ project: low, role: 'viewer', default_project_id: low.id });
    await givenMember(user, high, 'member');
    const caller = makeCaller(url, await givenToken(user));
    const board = await givenBoard(high);
    const group = await givenGroup(high, board);
    const card = await givenCard(high, { group_id: group });
    const calls: [string, object][] = [
      ['boards/get', { id: board }],
      ['cards/create', { title: 'x', group_id: group, owner_id: user.id }],
      ['comments/create', { card_id: card, comment: 'x' }],
      ['groups/update', { id: group, title: 'x' }],
      ['cards/list', { group_id: group }],
      ['cards/get', { id: card }],
      ['cards/delete', { id: card }],
    ];

    for (const [path, input] of calls) {
      const count = await countStatements(async () => {
        const { status } = await caller.post(`/services/operations/v1/operations/${path}`, input);
        expect([200, 201], path).toContain(status);
      });
      expect(count, path).toBe(2);
    }
  });
});

describe('a call that names no row', () => {
  const create = '/services/operations/v1/operations/tags/create';

  it('acts in the default project, else in the first one, else, for a superadmin, in the first of all', async () => {
    const { asOwner, users, project } = await givenWorld();
    const { url } = await testService();
    const later = await givenProject();
    const superadmin = await givenUser({ superadmin: true });
    const projectOfTag = async (caller: TestCaller) =>
      (await caller.post(create, { name: 'x' })).body.data.tag.project_id;
    await givenMember(users.owner, later, 'owner');

    expect(await projectOfTag(asOwner)).toBe(project.id);
    await changeDefault(users.owner, later.id);
    expect(await projectOfTag(asOwner)).toBe(later.id);
    expect(await projectOfTag(makeCaller(url, await givenToken(superadmin)))).toBe(await firstProject());
  });

  it('acts in the first project while the default one is inactive, or no longer theirs', async () => {
    const { asOwner, users, project, otherProject } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.owner, inactive, 'owner');
    const defaults = async () => (await asOwner.rpc.projects.listOwn.query({})).projects.map((own) => own.is_default);

    for (const unusable of [inactive, otherProject]) {
      await changeDefault(users.owner, unusable.id);
      expect((await asOwner.post(create, { name: 'x' })).body.data?.tag.project_id).toBe(project.id);
      expect(await defaults()).toEqual([true]);
    }
  });

  it('403 if the role there is too low, although it is high enough in another project', async () => {
    const { asViewer, users } = await givenWorld();
    const later = await givenProject();
    await givenMember(users.viewer, later, 'owner');

    expect(await asViewer.post(create, { name: 'x' })).toMatchObject({
      status: 403,
      body: { message: 'This requires the role member; yours in this project is viewer.' },
    });
    expect((await asViewer.post(create, { name: '' })).status).toBe(422);
    expect((await asViewer.in(later.id).post(create, { name: 'x' })).status).toBe(201);
  });

  it('403 for rows of an inactive project, also for its owner and a superadmin', async () => {
    const { asOwner, asSuperadmin, users } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.owner, inactive, 'owner');
    const id = await givenCard(inactive);

    for (const caller of [asOwner, asSuperadmin])
      expect((await caller.post('/services/operations/v1/operations/cards/delete', { id })).status).toBe(403);
  });
});

async function changeDefault({ id }: TestUser, project: number) {
  await query(await testDb(), sql`update users set default_project_id = ${project} where id = ${id}`);
}

async function firstProject() {
  const [first] = await query(await testDb(), sql<{ id: number }>`select min(id) as id from projects where is_active`);
  return first!.id;
}
