import { randomUUID } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { type Given, inputFor, invalidInput } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import { ACCESS } from '../../server/domain/access/access.ts';
import { ADMIN_SCOPE, GRANTS_SCOPE, scopesFor } from '../../server/domain/access/scopes.ts';
import type { Role } from '../../shared/user.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { readVersions } from '../harness/contents.ts';
import { countStatements, databaseUrl, testService, withOwnDatabase } from '../harness/service.ts';
import {
  allowedCaller,
  CALLERS,
  type CallerName,
  givenStartState,
  hasAccess,
  startStates,
  WHOSE,
  type Whose,
} from '../harness/startStates.ts';
import { overRest, overRestWithoutKey, overRpc, refusedByAll, type Surface } from '../harness/surfaces.ts';
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
} from '../harness/world.ts';

/** Which caller gets which status on whose rows. Every procedure needs a row in the table of start states. */

/** All surfaces are compared on the embedded database; one is enough on a server. */
const refuses: Surface = async (...call) => {
  if (!databaseUrl) await refusedByAll(...call);
  return overRestWithoutKey(...call);
};
const succeeds = databaseUrl ? overRpc : overRest;

const titled = (some: Procedure[]) => some.map((procedure) => [procedure.name, procedure] as const);
const change = async (statement: RawBuilder<unknown>) => query(await testDb(), statement);

function expectedStatus(name: string, caller: CallerName, whose: Whose): number | undefined {
  const { access, on, missing = 404, success } = startStates.get(name)!;
  const allowed = success === 400 ? 400 : undefined;
  if (access !== 'anyone' && caller === 'Nobody') return 401;
  if (!hasAccess(caller, access)) return 403;
  if (!on) return allowed;
  if (whose === 'unknown' || whose === 'deleted') return missing;
  if (on.owner === 'author')
    return caller === (whose === 'foreign' ? 'Outsider' : 'Member') ? allowed : (on.foreign ?? 403);
  if (on.owner === 'superadmins') return caller === 'Superadmin' ? allowed : 403;
  if (on.owner === 'nobody' || (caller === 'Superadmin' && !on.foreign)) return allowed;
  return (whose === 'foreign') === (caller === 'Outsider') ? allowed : (on.foreign ?? 403);
}

// Its tests compare all rows.
withOwnDatabase();

describe('every procedure', () => {
  it('has a start state with its access and status', () => {
    const expected = procedures.map(({ name, access, rest }) => `${name}: ${access} ${rest!.status}`);

    const stated = [...startStates].map(
      ([name, { access, success }]) => `${name}: ${access} ${success === 201 ? 201 : 200}`,
    );
    expect(stated.sort()).toEqual(expected.sort());
  });
});

const onRowsOfProjects = procedures.filter(({ name }) => {
  const { on } = startStates.get(name)!;
  return on?.owner === 'project' && !on.foreign;
});

/** A call, and its status and reason; `done` if it succeeds. */
type Call = { by: string; caller: () => Promise<TestCaller>; on: Whose | 'both'; more?: Given; expected: string };

describe.each(titled(procedures))('%s', (_, procedure) => {
  it('answers callers, keys and rows with the expected status; a refused call writes nothing', async () => {
    const world = await givenWorld();
    const both = await givenUser({ project: world.project, role: 'owner' });
    await givenMember(both, world.otherProject, 'owner');
    const inputOn = async (on: Call['on']) => {
      const start = on === 'both' ? { ...world, users: { ...world.users, member: both } } : world;
      return inputFor(procedure, await givenStartState(procedure, start, on === 'both' ? 'own' : on));
    };
    const calls = [
      ...callsBySession(procedure, world),
      ...callsByKey(procedure, world, both),
      ...callsWithOtherInput(procedure, world),
    ];
    // Refused calls and queries change nothing, so they can share their inputs.
    const shared = new Map<Call['on'], Given>();
    for (const on of new Set(calls.map((call) => call.on))) shared.set(on, await inputOn(on));
    const unexpected: string[] = [];
    const make = async ({ by, caller, on, more, expected }: Call, surface: Surface, input = shared.get(on)!) => {
      const { status, reason } = await surface(await caller(), procedure, { ...input, ...more });
      const outcome = status ? `${status} ${reason}` : 'done';
      if (!outcome.startsWith(expected)) unexpected.push(`${by}, ${on}: ${outcome} instead of ${expected}`);
    };
    const isRefused = ({ expected }: Call) => expected !== 'done';
    // New tokens and keys are no change by the call.
    for (const call of calls.filter(isRefused)) {
      const caller = await call.caller();
      call.caller = async () => caller;
    }

    const before = await readVersions();
    for (const call of calls.filter(isRefused)) await make(call, refuses);
    expect(await readVersions()).toEqual(before);
    for (const call of calls.filter((each) => !isRefused(each)))
      await make(call, succeeds, procedure.type === 'query' ? undefined : await inputOn(call.on));

    expect(unexpected).toEqual([]);
  });
});

/** By every caller, on every kind of row. Callers without access are refused whatever they name. */
function callsBySession({ name }: Procedure, world: World): Call[] {
  const { on, access, endsSession } = startStates.get(name)!;
  const callerFor = async (caller: CallerName) => {
    if (!endsSession || caller === 'Nobody') return world[`as${caller}`];
    const token = await givenToken(world.users[caller.toLowerCase() as keyof World['users']]);
    return makeCaller((await testService()).url, token);
  };
  return CALLERS.flatMap((by) =>
    (on && hasAccess(by, access) ? WHOSE : (['own'] as const))
      .filter((whose) => whose !== 'deleted' || on?.isDeletable)
      .map((whose) => ({
        by,
        on: whose,
        caller: () => callerFor(by),
        expected: String(expectedStatus(name, by, whose) ?? 'done'),
      })),
  );
}

/** With keys: each needs the scopes of the operation, and the project of the row. */
function callsByKey(procedure: Procedure, { project, otherProject, users }: World, both: TestUser): Call[] {
  if (procedure.access === 'anyone') return [];
  const scopes = scopesFor(procedure);
  const isForSuperadmins = procedure.access === 'superadmin';
  const isOfAuthor = startStates.get(procedure.name)!.on?.owner === 'author';
  const withKey = (by: string, user: TestUser, state: KeyState, expected: string, chosen?: number): Call => ({
    by: `a key ${by}`,
    on: user === both || isOfAuthor ? 'both' : 'own',
    expected: scopes ? expected : '403 key_not_allowed',
    caller: async () => {
      const key = await givenKey(user, { last_used_at: new Date('2099-01-01'), ...state });
      return makeCaller((await testService()).url, key.secret, chosen);
    },
  });
  const without = (scope?: string) => ({ scopes: ALL_SCOPES.filter((each) => each !== scope) });
  const ofOtherProject = { project_id: otherProject.id };
  const needed = scopes ? [...scopes, ...(procedure.proof ? [GRANTS_SCOPE] : [])] : ALL_SCOPES;
  const reachedWithoutAdmin = 'role' in ACCESS[procedure.access] ? '403 no_project_access' : 'done';
  const { superadmin } = users;
  const isReached = isOfAuthor ? both : superadmin;
  return [
    withKey('without its scope', isReached, without(scopes?.[0]), scopes?.length === 0 ? 'done' : '403 scope_missing'),
    withKey('of another project', isReached, ofOtherProject, '403 no_project_access', project.id),
    ...(onRowsOfProjects.includes(procedure)
      ? [withKey('of another project, on a row', both, ofOtherProject, '403 other_project')]
      : []),
    ...(isForSuperadmins
      ? [withKey('of a project, for all projects', superadmin, ofOtherProject, '403 not_a_superadmin')]
      : []),
    withKey('with its scopes alone', isForSuperadmins ? superadmin : both, { scopes: needed }, 'done'),
    withKey(
      'without the scope admin',
      isReached,
      without(ADMIN_SCOPE),
      isForSuperadmins ? '403 scope_missing' : reachedWithoutAdmin,
    ),
  ];
}

/** Of a caller with access: an invalid input, and an outdated version. */
function callsWithOtherInput(procedure: Procedure, world: World): Call[] {
  const call = { on: 'own', caller: async () => allowedCaller(world, procedure) } as const;
  return [
    ...(procedure.needsInput
      ? [{ ...call, by: 'invalid input', more: invalidInput(procedure), expected: '422 invalid_input' }]
      : []),
    ...(procedure.isConditional
      ? [{ ...call, by: 'an outdated version', more: { if_version: '1' }, expected: '412 row_changed' }]
      : []),
  ];
}

describe('a call on rows of a project', () => {
  /** Their answers have secrets, which are not kept for a repeat. */
  const WITHOUT_REPEAT = ['webhooks.create', 'webhooks.rotateSecret'];
  const inProjects = procedures.filter(
    ({ name, access }) => 'role' in ACCESS[access] && startStates.get(name)!.success !== 400,
  );

  it.each(titled(inProjects))('%s needs the role there, also to repeat it', async (_, procedure) => {
    const world = await givenWorld();
    const { url } = await testService();
    const { project } = world;
    const { role: needed } = ACCESS[procedure.access] as { role: Role };
    const isOnRow = onRowsOfProjects.includes(procedure);
    const elsewhere = await givenProject();
    // Owns another project, too, so that only the access to this one decides.
    const user = await givenUser({
      project: elsewhere,
      role: 'owner',
      default_project_id: isOnRow ? elsewhere.id : project.id,
    });
    const caller = makeCaller(url, await givenToken(user));
    const inputOf = async (member: TestUser) =>
      inputFor(procedure, await givenStartState(procedure, { ...world, users: { ...world.users, member } }));
    const [input, key] = [await inputOf(user), randomUUID()];
    const membership = sql`project_id = ${project.id} and user_id = ${user.id}`;
    const leave = () => change(sql`delete from members where ${membership}`);
    const setRole = (role: Role) => change(sql`update members set role = ${role} where ${membership}`);

    await givenMember(user, project, 'viewer');
    if (isOnRow && needed !== 'viewer') expect(await overRpc(caller, procedure, input)).toMatchObject({ status: 403 });
    await setRole(needed);
    if (isOnRow) {
      expect(await overRpc(caller.in(elsewhere.id), procedure, input)).toMatchObject({ status: 403 });
      expect(await overRpc(caller.in(project.id), procedure, await inputOf(user))).toHaveProperty('data');
    }
    const first = await overRest(caller, procedure, input, key);
    expect(first).toHaveProperty('data');
    if (!procedure.isKeyed || WITHOUT_REPEAT.includes(procedure.name)) return;

    /** The answer is not returned; if a new call is refused, too, then in the same words. */
    const expectRefused = async (who: TestCaller, sent: Given, reasons: string[], over = overRest) => {
      const refused = await over(who, procedure, sent, key);
      expect(refused).toMatchObject({ status: 403, message: expect.any(String) });
      expect(reasons).toContain(refused.reason);
      const fresh = await overRest(who, procedure, sent);
      if (fresh.status === 403) expect(refused).toEqual(fresh);
    };
    await leave();
    await expectRefused(caller, input, LOST, refusedByAll);
    await givenMember(user, project, 'viewer');
    if (needed !== 'viewer') await expectRefused(caller, input, ['role_missing', 'other_platform']);
    await setRole(needed);
    await change(sql`update projects set is_active = false where id = ${project.id}`);
    await expectRefused(caller, input, LOST);
    await change(sql`update projects set is_active = true where id = ${project.id}`);
    const again = await caller.post(procedure.rest!.path, input, { 'Idempotency-Key': key });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await overRest(caller, procedure, input, key)).toEqual(first);

    const superadmin = await givenUser({
      superadmin: true,
      project: elsewhere,
      role: 'owner',
      default_project_id: project.id,
    });
    const asSuperadmin = makeCaller(url, await givenToken(superadmin));
    const other = await inputOf(world.users.member);
    expect(await overRest(asSuperadmin, procedure, other, key)).toHaveProperty('data');
    await change(sql`update users set superadmin = false where id = ${superadmin.id}`);
    await expectRefused(asSuperadmin, other, LOST);
  });
  const LOST = ['other_project', 'no_project_access', 'other_platform'];

  it('422 to repeat it with a key of another project: the answer stays where it is', async () => {
    const { url } = await testService();
    const own = await givenWorld();
    await givenMember(own.users.member, own.otherProject, 'member');
    const { secret } = await givenKey(own.users.member, { project_id: own.otherProject.id });
    const [id, headers] = [await givenCard(own.project), { 'Idempotency-Key': randomUUID() }];
    const update = '/services/operations/v1/operations/cards/update';

    await own.asMember.post(update, { id, title: 'Secret' }, headers);
    const answer = await makeCaller(url, secret).post(update, { id, title: 'Secret' }, headers);

    expect(answer.status).toBe(422);
    expect(answer.headers.get('x-error-reason')).toBe('idempotency_key_reused');
  });

  it('403 to repeat it with X-Project-Id once the project is not one of theirs', async () => {
    const own = await givenWorld();
    await givenMember(own.users.member, own.otherProject, 'member');
    const create = () =>
      own.asMember
        .in(own.project.id)
        .post('/services/operations/v1/operations/cards/create', { title: 'x' }, { 'Idempotency-Key': 'the-same-key' });

    expect((await create()).status).toBe(201);
    await change(sql`delete from members where project_id = ${own.project.id} and user_id = ${own.users.member.id}`);

    expect((await create()).status).toBe(403);
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
