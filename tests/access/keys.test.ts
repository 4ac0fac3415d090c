import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { procedures, subscriptions } from '../../server/api/procedures.ts';
import { SCOPES } from '../../server/api/routers/app.ts';
import { entities } from '../../server/database/entities.ts';
import { query } from '../../server/database/query.ts';
import { scopesFor } from '../../server/domain/access/scopes.ts';
import { makeKeyUse } from '../../server/limits/keyUse.ts';
import { SCOPES as DESCRIBED_SCOPES, scopesFor as offeredScopes } from '../../server/web/app/desk/scopes.ts';
import { makeCaller, refusalOf, type TestCaller } from '../harness/caller.ts';
import { reasonOf } from '../harness/client.ts';
import { givenProtectedUser } from '../harness/codes.ts';
import { countStatements, givenService, testService } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenKey,
  givenMember,
  givenProject,
  givenServiceAccount,
  givenTheme,
  givenToken,
  givenTrial,
  givenUser,
  givenWorld,
  type KeyState,
  PASSWORD,
  stored,
  type TestUser,
  testDb,
} from '../harness/world.ts';

const KEYS = '/services/platforms/v1/keys';
const BOARDS = '/services/operations/v1/operations/boards/list';
const MISSING_ID = 2_147_483_647;

const callerWith = async (secret: string, projectId?: number) =>
  makeCaller((await testService()).url, secret, projectId);
const callerOf = async (user: TestUser, state: KeyState = {}) => callerWith((await givenKey(user, state)).secret);
const statusOf = async (caller: TestCaller) => (await caller.post(BOARDS)).status;

/** A key whose use is stored already, so that calls with it write nothing by the way. */
const USED = { last_used_at: new Date('2099-01-01') };

describe('POST …/keys/create', () => {
  it('201 with a secret that works on both surfaces, and is never shown again', async () => {
    const { asMember, users } = await givenWorld();

    const { status, body } = await asMember.post(`${KEYS}/create`, {
      name: 'Import',
      scopes: ['boards:read', 'boards:read'],
    });
    const { key, secret } = body.data;

    expect(status).toBe(201);
    expect(secret).toMatch(/^dkh_[0-9A-Za-z]{36}$/);
    expect(key).toMatchObject({
      user_id: users.member.id,
      scopes: ['boards:read'],
      project_id: null,
      expires_at: null,
    });
    const caller = await callerWith(secret);
    expect(await statusOf(caller)).toBe(200);
    expect(await caller.rpc.boards.list.query()).toEqual({ boards: [] });
    const listed = await asMember.post(`${KEYS}/list`, {});
    expect(listed.body.data.keys.map(({ id }: { id: number }) => id)).toEqual([key.id]);
    expect(JSON.stringify(listed.body)).not.toContain(secret);
    expect(Object.keys(listed.body.data.keys[0]).filter((field) => /hash|secret/.test(field))).toEqual([]);
  });

  it('422 without scopes, and for an unknown scope with all possible ones', async () => {
    const { asMember } = await givenWorld();
    const errorsFor = async (scopes: string[]) => {
      const { status, body } = await asMember.post(`${KEYS}/create`, { name: 'x', scopes });
      return { status, ...body.errors };
    };

    expect(await errorsFor([])).toEqual({ status: 422, scopes: ['scopes must have at least 1 elements.'] });
    const { status, 'scopes.1': unknown } = await errorsFor(['cards:read', 'cards:delete']);
    expect(status).toBe(422);
    expect(unknown[0]).toMatch(
      /^scopes\.1 must be one of admin, audit:read, boards:read, .*templates:read, templates:write, /,
    );
    expect(unknown[0]).not.toMatch(/account|keys:|auth/);
  });

  it('the page describes every scope', () => {
    expect([...DESCRIBED_SCOPES.keys()].toSorted()).toEqual(SCOPES);
  });

  it.each([
    ['viewer', ['signedIn', 'viewer']],
    ['member', ['signedIn', 'viewer', 'member']],
    ['owner', ['signedIn', 'viewer', 'member', 'ownerOrSuperadmin', 'billing']],
  ] as const)('the page offers a %s the scopes of what they may call', (role, levels: readonly string[]) => {
    const allowed = [...procedures, ...subscriptions].filter(({ access }) => levels.includes(access));
    const usable = new Set(allowed.flatMap((procedure) => scopesFor(procedure) ?? []));

    const offered = offeredScopes({ isSuperadmin: false, role }).map(([scope]) => scope);

    expect(offered.toSorted()).toEqual([...usable].toSorted());
  });

  it('422 for a past expiry, for a project of others, and for admin in one project', async () => {
    const { asMember, asSuperadmin, otherProject, project } = await givenWorld();
    const refused = (caller: TestCaller, more: object) =>
      refusalOf(caller.rpc.keys.create.mutate({ name: 'x', scopes: ['cards:read'], ...more }));

    expect(await refused(asMember, { expires_at: '2020-01-01' })).toMatchObject({
      status: 422,
      errors: { expires_at: ['expires_at must be in the future.'] },
    });
    for (const project_id of [otherProject.id, MISSING_ID])
      expect(await refused(asMember, { project_id })).toMatchObject({
        status: 422,
        errors: { project_id: ['project_id is not a project of this user.'] },
      });
    expect(await refused(asSuperadmin, { project_id: project.id, scopes: ['admin'] })).toMatchObject({
      status: 422,
      errors: { project_id: ["project_id can't be combined with the scope admin, which is for all projects."] },
    });
  });

  it('201 for a service, by superadmins alone; 403 for other persons, 404 for unknown users', async () => {
    const { asSuperadmin, asOwner, users } = await givenWorld();
    const service = await givenServiceAccount();
    const create = (caller: TestCaller, user_id: number) =>
      caller.rpc.keys.create.mutate({ name: 'x', scopes: ['cards:read'], user_id });

    const { key } = await create(asSuperadmin, service.id);

    expect(key.user_id).toBe(service.id);
    expect((await asSuperadmin.rpc.keys.list.query({ user_id: service.id })).keys).toEqual([key]);
    expect((await create(asOwner, users.owner.id)).key.user_id).toBe(users.owner.id);
    for (const user_id of [service.id, users.member.id, MISSING_ID])
      expect(await reasonOf(create(asOwner, user_id))).toBe('403 not_a_superadmin');
    expect(await reasonOf(create(asSuperadmin, users.member.id))).toBe('403 other_user');
    expect(await reasonOf(create(asSuperadmin, MISSING_ID))).toBe('404 not_found');
    expect(await reasonOf(asSuperadmin.rpc.keys.list.query({ user_id: users.member.id }))).toBe('403 other_user');
  });
});

describe('the number of keys', () => {
  it('400 beyond 100 valid ones; of the others, the last 100 are kept', async () => {
    const { asMember, users } = await givenWorld();
    const add = (ended: boolean) =>
      testDb().then((db) =>
        query(
          db,
          sql`insert into api_keys (user_id, name, scopes, secret_hash, revoked_at)
            select ${users.member.id}, 'x', array['cards:read'], gen_random_uuid(), ${ended ? new Date() : null}
            from generate_series(1, 110)`,
        ),
      );
    const create = () => asMember.rpc.keys.create.mutate({ name: 'x', scopes: ['cards:read'] });
    await add(true);
    await create();
    const [{ keys }] = (await query(
      await testDb(),
      sql`select count(*)::int as keys from api_keys where user_id = ${users.member.id}`,
    )) as [{ keys: number }];

    expect(keys).toBe(101);
    await add(false);
    expect(await reasonOf(create())).toBe('400 place_full');
  });
});

describe('a session that is older than ten minutes', () => {
  const create = { name: 'x', scopes: ['cards:read'] };
  const old = { proven_at: new Date('2020-01-01') };
  const callerWithOldToken = async (user: TestUser) =>
    makeCaller((await testService()).url, await givenToken(user, old));

  it('422 without the password or with a wrong one; the right one counts for ten minutes', async () => {
    const user = await givenUser();
    const { rpc } = await callerWithOldToken(user);
    const { id } = await givenKey(user);
    const rotate = { id, previous_valid_hours: 1 };

    expect(await refusalOf(rpc.keys.create.mutate(create))).toMatchObject({
      status: 422,
      errors: { password: ['password is required: it was not given within the last 10 minutes.'] },
    });
    expect(await reasonOf(rpc.keys.rotate.mutate(rotate))).toBe('422 proof_required');
    expect(await reasonOf(rpc.keys.create.mutate({ ...create, password: 'wrong' }))).toBe('422 password_wrong');
    expect((await rpc.keys.list.query({})).keys).toHaveLength(1);

    await rpc.keys.create.mutate({ ...create, password: PASSWORD });
    await rpc.keys.create.mutate(create);
  });

  it('422 without a code where a second factor is enabled; a recovery code is enough', async () => {
    const user = await givenProtectedUser();
    const { rpc } = await callerWithOldToken(user);
    const withPassword = { ...create, password: PASSWORD };

    expect(await refusalOf(rpc.keys.create.mutate(withPassword))).toMatchObject({
      status: 422,
      errors: { code: ['code is required: it was not given within the last 10 minutes.'] },
    });
    expect(await reasonOf(rpc.keys.create.mutate({ ...withPassword, code: '000000' }))).toBe('422 code_wrong');
    await rpc.keys.create.mutate({ ...withPassword, code: 'a-code', is_recovery: true });
  });

  it('422 after a sign-in from a remembered device: no code was given', async () => {
    const { url } = await testService();
    const user = await givenProtectedUser();
    const signIn = { email: user.email, password: PASSWORD };
    const first = await makeCaller(url).rpc.auth.authenticate.mutate({
      ...signIn,
      code: 'a-code',
      is_recovery: true,
    });
    await makeCaller(url, first.token).rpc.keys.create.mutate(create);

    const remembered = await makeCaller(url).rpc.auth.authenticate.mutate({ ...signIn, token: first.token });

    expect(await reasonOf(makeCaller(url, remembered.token).rpc.keys.create.mutate(create))).toBe('422 proof_required');
  });
});

describe('POST …/keys/rotate', () => {
  const rotate = (caller: TestCaller, id: number, previous_valid_hours: number) =>
    caller.rpc.keys.rotate.mutate({ id, previous_valid_hours });

  it('200 with a new secret; at most one previous one stays valid, for the chosen time', async () => {
    const { asMember, users } = await givenWorld();
    const { id, secret } = await givenKey(users.member);
    const secrets = [secret];
    const rotateFor = async (hours: number) => {
      const rotated = await rotate(asMember, id, hours);
      secrets.push(rotated.secret);
      return rotated.key;
    };
    const statuses = async () => Promise.all(secrets.map(async (each) => statusOf(await callerWith(each))));

    await rotateFor(0);
    expect(await statuses()).toEqual([401, 200]);
    await rotateFor(168);
    const { previous_expires_at, updated_at } = await rotateFor(24);
    expect(previous_expires_at!.getTime() - updated_at.getTime()).toBe(24 * 3_600_000);
    expect(await statuses()).toEqual([401, 401, 200, 200]);
    await query(await testDb(), sql`update api_keys set previous_expires_at = now() where id = ${id}`);
    expect(await statuses()).toEqual([401, 401, 401, 200]);
  });

  it('400 for a revoked or expired key, 403 for one of others, 422 for more than 7 days', async () => {
    const { asMember, asSuperadmin, users } = await givenWorld();
    const past = new Date('2020-01-01');
    const revoked = await givenKey(users.member, { revoked_at: past });
    const expired = await givenKey(users.member, { expires_at: past });
    const { id } = await givenKey(users.member);

    for (const ended of [revoked, expired]) expect(await reasonOf(rotate(asMember, ended.id, 1))).toBe('400 key_ended');
    expect(await reasonOf(rotate(asSuperadmin, id, 1))).toBe('403 other_user');
    expect(await reasonOf(rotate(asMember, id, 169))).toBe('422 invalid_input');
    expect(await reasonOf(rotate(asMember, id, -1))).toBe('422 invalid_input');
  });
});

describe('POST …/keys/revoke', () => {
  it('200, and the next request with either secret is a 401; once more changes nothing', async () => {
    const { asMember, users } = await givenWorld();
    const { id, secret: first } = await givenKey(users.member);
    const { secret: second } = await asMember.rpc.keys.rotate.mutate({ id, previous_valid_hours: 1 });

    expect((await asMember.post(`${KEYS}/revoke`, { id })).status).toBe(200);

    for (const secret of [first, second]) expect(await statusOf(await callerWith(secret))).toBe(401);
    const before = await stored('api_keys', id);
    expect((await asMember.post(`${KEYS}/revoke`, { id })).status).toBe(200);
    expect(await stored('api_keys', id)).toEqual(before);
  });
});

describe('a call with a key', () => {
  it('401 for a mistyped key, without a statement', async () => {
    const { secret } = await givenKey(await givenUser());
    const caller = await callerWith(`${secret.slice(0, -1)}${secret.endsWith('x') ? 'y' : 'x'}`);

    expect(await countStatements(async () => expect(await statusOf(caller)).toBe(401))).toBe(0);
  });

  it('401 for one that was revoked or has expired, or whose user is inactive', async () => {
    const { users, project } = await givenWorld();
    const past = new Date('2020-01-01');
    const inactive = await givenUser({ project, is_active: false });
    const callers = [
      await callerOf(users.member, { revoked_at: past }),
      await callerOf(users.member, { expires_at: past }),
      await callerOf(inactive),
    ];

    expect(await Promise.all(callers.map(statusOf))).toEqual([401, 401, 401]);
    expect(await statusOf(await callerOf(users.member, { expires_at: new Date('2099-01-01') }))).toBe(200);
  });

  it('needs one statement to find its caller, like one with a token', async () => {
    const { users } = await givenWorld();
    const { url } = await testService();
    const callers = [await callerOf(users.member, USED), makeCaller(url, await givenToken(users.member))];

    for (const caller of callers)
      expect(await countStatements(async () => expect(await statusOf(caller)).toBe(200))).toBe(2);
  });

  it('403 with the missing scope; a write scope reads what it writes, and nothing else', async () => {
    const { project, users } = await givenWorld();
    const id = await givenCard(project, { description: 'Whole' });
    const reading = await callerOf(users.member, { scopes: ['cards:read'] });
    const { rpc } = await callerOf(users.member, { scopes: ['cards:write'] });

    const refused = await reading.post('/services/operations/v1/operations/cards/create', 'no JSON');
    expect(refused).toMatchObject({
      status: 403,
      body: { error: true, message: 'This requires the scope cards:write.' },
    });
    expect(refused.headers.get('x-error-reason')).toBe('scope_missing');
    expect((await rpc.cards.update.mutate({ id })).card).toMatchObject({ id, description: 'Whole' });
    expect(await reasonOf(rpc.cards.get.query({ id }))).toBe('403 scope_missing');
  });

  it('has the current rights of its user', async () => {
    const { project } = await givenWorld();
    const service = await givenServiceAccount({ project, role: 'member' });
    const caller = await callerOf(service);
    const create = () => caller.post('/services/operations/v1/operations/tags/create', { name: 'x' });
    const change = async (table: 'users' | 'members', changes: object) =>
      (await testDb())
        .updateTable(table)
        .set(changes)
        .where(table === 'users' ? 'id' : ('user_id' as never), '=', service.id as never)
        .execute();
    expect((await create()).status).toBe(201);

    await change('members', { role: 'viewer' });
    expect((await create()).status).toBe(403);
    await change('users', { superadmin: true });
    expect((await create()).status).toBe(201);
    await change('users', { is_active: false });
    expect((await create()).status).toBe(401);
  });
});

describe('a key of a superadmin without the scope admin', () => {
  it('acts where its user is a member, and nowhere else', async () => {
    const { project, otherProject, users } = await givenWorld();
    await givenMember(users.superadmin, otherProject, 'viewer');
    const scopes = ['boards:read', 'members:read', 'members:write', 'themes:read', 'subscriptions:read'];
    const { rpc } = await callerOf(users.superadmin, { scopes });
    const foreign = { project_id: project.id };
    const board = await givenBoard(otherProject);

    expect((await rpc.boards.get.query({ id: board })).board.id).toBe(board);
    expect(await reasonOf(rpc.boards.get.query({ id: await givenBoard(project) }))).toBe('403 other_project');
    expect(await reasonOf(rpc.members.list.query(foreign))).toBe('403 other_project');
    expect(await reasonOf(rpc.members.set.mutate({ ...foreign, user_id: users.member.id, role: 'owner' }))).toBe(
      '403 role_missing',
    );
    expect(await reasonOf(rpc.themes.list.query({}))).toBe('403 role_missing');
    expect(await reasonOf(rpc.subscriptions.list.query({}))).toBe('403 role_missing');
  });
});

describe('a key of one project', () => {
  it('acts there without X-Project-Id, in no other project, and only while its user is a member', async () => {
    const { project, otherProject, users } = await givenWorld();
    await givenMember(users.outsider, project, 'member');
    const board = await givenBoard(project);
    const caller = await callerOf(users.outsider, { project_id: project.id });

    expect((await caller.rpc.boards.list.query()).boards.map(({ id }) => id)).toEqual([board]);
    expect(await statusOf(caller.in(project.id))).toBe(200);
    expect(await reasonOf(caller.in(otherProject.id).rpc.boards.list.query())).toBe('403 no_project_access');
    expect(await reasonOf(caller.rpc.boards.get.query({ id: await givenBoard(otherProject) }))).toBe(
      '403 other_project',
    );
    expect((await caller.rpc.projects.listOwn.query({})).projects.map(({ id }) => id)).toEqual([project.id]);
    await query(await testDb(), sql`delete from members where project_id = ${project.id}`);
    expect(await reasonOf(caller.rpc.boards.list.query())).toBe('403 no_project_access');
  });

  it('has the role of its user there, and nothing beyond, for superadmins, too', async () => {
    const { project, otherProject, users } = await givenWorld();
    const theme = await givenTheme(project);
    await givenMember(users.superadmin, project, 'owner');
    const { rpc } = await callerOf(users.superadmin, { project_id: project.id });

    expect(await rpc.cards.delete.mutate({ id: await givenCard(project) })).toBeUndefined();
    expect((await rpc.themes.list.query({})).themes.map(({ id }) => id)).toEqual([theme]);
    expect(await reasonOf(rpc.cards.delete.mutate({ id: await givenCard(otherProject) }))).toBe('403 other_project');
    expect(await reasonOf(rpc.members.list.query({ project_id: otherProject.id }))).toBe('403 other_project');
    expect(
      await reasonOf(rpc.themes.submitVersion.mutate({ theme_id: await givenTheme(otherProject), version: '1' })),
    ).toBe('403 other_platform');
    expect(await reasonOf(rpc.users.list.query({}))).toBe('403 not_a_superadmin');
  });

  it('lists the subscriptions of its platform alone, for those who handle billing everywhere, too', async () => {
    const project = await givenProject();
    const user = await givenUser({ superadmin_billing: true });
    const { id } = await givenTrial(project);
    await givenTrial(await givenProject());
    const caller = await callerOf(user, { project_id: project.id });
    const list = () => caller.rpc.subscriptions.list.query({});

    expect((await list()).subscriptions.map(({ id }) => id)).toEqual([id]);
    await query(await testDb(), sql`update projects set is_active = false where id = ${project.id}`);
    expect(await reasonOf(list())).toBe('403 no_project_access');
  });
});

describe('the last use of a key', () => {
  it('is stored to the minute after the answer, and once a minute', async () => {
    const { users } = await givenWorld();
    const { id, secret } = await givenKey(users.member, { last_used_at: new Date('2020-01-01') });
    const caller = await callerWith(secret);

    await statusOf(caller);

    await expect.poll(async () => (await stored('api_keys', id)).last_used_at.getFullYear()).not.toBe(2020);
    const { last_used_at } = await stored('api_keys', id);
    expect(last_used_at.getTime() % 60_000).toBe(0);
  });

  it('is written by one statement at a time for all keys of a node, and lost without harm', async () => {
    const written: number[][] = [];
    const warnings: unknown[] = [];
    const release: (() => void)[] = [];
    const log = { warn: (error: unknown) => warnings.push(error) };
    const use = makeKeyUse(async (ids) => {
      written.push(ids);
      await new Promise<void>((resolve) => release.push(resolve));
      if (written.length === 1) throw new Error('The database is away.');
    }, log as never);

    for (const id of [1, 2, 2, 3]) use.note(id);
    expect(written).toEqual([[1]]);
    release.shift()!();
    await expect.poll(() => written).toEqual([[1], [2, 3]]);
    release.shift()!();

    expect(warnings).toHaveLength(1);
  });
});

describe('the rate limit', () => {
  it('429 for all keys and tokens of a user together', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '2' });
    const { users } = await givenWorld();
    const secrets = [await givenKey(users.member), await givenKey(users.member)].map(({ secret }) => secret);
    const callers = [...secrets, await givenToken(users.member), secrets[0]!].map((token) => makeCaller(url, token));

    const statuses: number[] = [];
    for (const caller of callers) statuses.push(await statusOf(caller));

    expect(statuses).toEqual([200, 200, 429, 429]);
  });

  it('429 for keys that do not exist, per address and then without a statement; others still work', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '2' });
    const { users } = await givenWorld();
    const { secret } = await givenKey(users.member, USED);
    const { secret: revoked } = await givenKey(users.member, { revoked_at: new Date() });
    const [valid, invalid] = [makeCaller(url, secret), makeCaller(url, revoked)];
    expect(await statusOf(valid)).toBe(200);

    expect([await statusOf(invalid), await statusOf(invalid)]).toEqual([401, 401]);

    expect(await countStatements(async () => expect(await statusOf(invalid)).toBe(429))).toBe(0);
    expect(await statusOf(valid)).toBe(200);
  });
});

describe('the log', () => {
  it('has the id of the key for each call with one, and never its secret', async () => {
    const service = await givenService();
    const { users } = await givenWorld();
    const { id, secret } = await givenKey(users.member);

    await makeCaller(service.url, secret).post(BOARDS);
    await makeCaller(service.url, await givenToken(users.member)).post(BOARDS);

    const answered = () => service.logged.filter(({ msg }) => msg === 'answered');
    await expect.poll(answered).toHaveLength(2);
    expect(answered()[0]).toMatchObject({ user: users.member.id, key: id });
    expect(answered()[1]).not.toHaveProperty('key');
    expect(JSON.stringify(service.logged)).not.toContain(secret);
  });
});

describe('a copy of the whole database', () => {
  it('401 for everything in it that could be a key', async () => {
    const { asMember } = await givenWorld();
    const created = await asMember.rpc.keys.create.mutate({ name: 'x', scopes: ['boards:read'] });
    const { secret } = await asMember.rpc.keys.rotate.mutate({ id: created.key.id, previous_valid_hours: 24 });
    const texts: string[] = [];
    for (const { meta } of entities) {
      const rows = await query(await testDb(), sql`select t.*, t::text as whole from ${sql.table(meta.tableName)} t`);
      texts.push(JSON.stringify(rows));
    }
    const { secret_hash, previous_hash } = await stored('api_keys', created.key.id);

    for (const valid of [secret, created.secret]) {
      expect(await statusOf(await callerWith(valid))).toBe(200);
      expect(texts.join()).not.toContain(valid.slice(4, 14));
    }
    for (const hash of [secret_hash, previous_hash])
      for (const made of [hash, `dkh_${hash}`, `dkh_${hash.slice(0, 36)}`])
        expect(await statusOf(await callerWith(made))).toBe(401);
  });
});
