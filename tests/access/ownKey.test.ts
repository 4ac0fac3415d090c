import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { makeCaller, refusalOf, type TestCaller } from '../harness/caller.ts';
import { reasonOf } from '../harness/client.ts';
import { testService } from '../harness/service.ts';
import {
  givenKey,
  givenServiceAccount,
  givenUser,
  givenWorld,
  type KeyState,
  stored,
  type TestUser,
  testDb,
} from '../harness/world.ts';

const KEYS = '/services/platforms/v1/keys';
const DAY = 24 * 3_600_000;

const callerWith = async (secret: string, projectId?: number) =>
  makeCaller((await testService()).url, secret, projectId);
const givenCaller = async (user: TestUser, state: KeyState = {}) => {
  const { id, secret } = await givenKey(user, state);
  return { id, secret, caller: await callerWith(secret) };
};
const statusOf = async (secret: string) => (await (await callerWith(secret)).post(`${KEYS}/self`)).status;

describe('POST …/keys/self', () => {
  it('200 with the key and its user, without scopes and on both surfaces', async () => {
    const { project } = await givenWorld();
    const service = await givenServiceAccount({ name: 'Nightly import', project });
    const state = { name: 'import', scopes: [], project_id: project.id, last_used_at: new Date('2099-01-01') };
    const { id, caller } = await givenCaller(service, { ...state, expires_at: new Date('2099-06-01') });

    const { status, body } = await caller.post(`${KEYS}/self`);

    expect(status).toBe(200);
    expect(body.data).toEqual({
      user: { id: service.id, name: 'Nightly import', kind: 'service' },
      key: {
        ...{ id, user_id: service.id, ...state, last_used_at: '2099-01-01T00:00:00.000Z' },
        ...{ expires_at: '2099-06-01T00:00:00.000Z', previous_expires_at: null, rotated_at: null, revoked_at: null },
        ...{ created_at: expect.any(String), updated_at: expect.any(String) },
      },
      secret_expires_at: '2099-06-01T00:00:00.000Z',
    });
    expect(JSON.parse(JSON.stringify(await caller.rpc.keys.self.query()))).toEqual(body.data);
  });

  it('200 for a person without a project', async () => {
    const user = await givenUser();
    const { caller } = await givenCaller(user, { scopes: ['cards:read'] });

    expect(await caller.rpc.keys.self.query()).toMatchObject({ user: { id: user.id, kind: 'person' } });
  });

  it('403 for a token, 401 for a key that has ended', async () => {
    const { asSuperadmin, users } = await givenWorld();
    const past = new Date('2020-01-01');

    expect(await refusalOf(asSuperadmin.rpc.keys.self.query())).toEqual({
      status: 403,
      message: 'Only a key can call this: send its secret instead of a token.',
    });
    expect(await reasonOf(asSuperadmin.rpc.keys.self.query())).toBe('403 key_required');
    for (const ended of [{ revoked_at: past }, { expires_at: past }])
      expect(await statusOf((await givenKey(users.member, ended)).secret)).toBe(401);
  });
});

describe('POST …/keys/rotate-self', () => {
  const rotate = ({ rpc }: TestCaller, input: object = {}) => rpc.keys.rotateSelf.mutate(input);

  it('200 with a new secret of the same key; the sent one stays valid for a day, or as long as chosen', async () => {
    const { project } = await givenWorld();
    const service = await givenServiceAccount({ project });
    const expires_at = new Date('2099-01-01');
    const { id, secret, caller } = await givenCaller(service, { project_id: project.id, expires_at });
    const before = await stored('api_keys', id);

    const first = await caller.post(`${KEYS}/rotate-self`, {});

    expect(first.status).toBe(200);
    const { secret: second, key } = first.body.data;
    expect(second).toMatch(/^dkh_[0-9A-Za-z]{36}$/);
    expect(key).toMatchObject({ id, user_id: service.id, project_id: project.id, scopes: before.scopes });
    expect(new Date(key.expires_at)).toEqual(expires_at);
    expect(Date.parse(key.previous_expires_at) - Date.parse(key.rotated_at)).toBe(DAY);
    expect([await statusOf(secret), await statusOf(second)]).toEqual([200, 200]);
    expect((await caller.rpc.keys.self.query()).secret_expires_at).toEqual(new Date(key.previous_expires_at));

    const { secret: third, key: later } = await rotate(await callerWith(second), { previous_valid_hours: 1 });
    expect(later.previous_expires_at!.getTime() - later.rotated_at!.getTime()).toBe(3_600_000);
    expect(await Promise.all([secret, second, third].map(statusOf))).toEqual([401, 200, 200]);
    expect(JSON.stringify(await stored('api_keys', id))).not.toContain(third.slice(4, 14));
  });

  it('narrows the scopes of both secrets for good; 422 for a scope that the key does not have', async () => {
    const { project } = await givenWorld();
    const { secret, caller } = await givenCaller(await givenServiceAccount({ project }), {
      scopes: ['boards:read', 'cards:read'],
    });

    expect(await refusalOf(rotate(caller, { scopes: ['cards:read', 'cards:write'] }))).toMatchObject({
      status: 422,
      errors: { scopes: ['scopes must be scopes that the key has.'] },
    });
    expect(await reasonOf(rotate(caller, { scopes: [] }))).toBe('422 invalid_input');
    const rotated = await rotate(caller, { scopes: ['cards:read', 'cards:read'] });

    expect(rotated.key.scopes).toEqual(['cards:read']);
    for (const each of [secret, rotated.secret]) {
      const { rpc } = await callerWith(each);
      expect(await reasonOf(rpc.boards.list.query())).toBe('403 scope_missing');
      expect(await rpc.cards.list.query({})).toMatchObject({ cards: [] });
    }
    const latest = await callerWith(rotated.secret);
    expect(await reasonOf(rotate(latest, { scopes: ['boards:read'] }))).toBe('422 invalid_input');
    expect(await reasonOf(rotate(latest, { scopes: ['admin'] }))).toBe('422 invalid_input');
  });

  it('400 with the previous secret: who has it can not take the key back', async () => {
    const { id, caller } = await givenCaller(await givenServiceAccount());
    await rotate(caller);
    // Its last use is noted a little later.
    const { last_used_at: _, ...before } = await stored('api_keys', id);

    expect(await refusalOf(rotate(caller))).toEqual({
      status: 400,
      message: 'This secret was replaced by a rotation: use the new one.',
    });
    expect(await reasonOf(rotate(caller))).toBe('400 secret_replaced');
    expect(await stored('api_keys', id)).toMatchObject(before);
  });

  it('200 for one of several calls at once, whose secret works; 400 for the others', async () => {
    const { id, secret } = await givenCaller(await givenServiceAccount());
    const callers = await Promise.all(Array.from({ length: 5 }, () => callerWith(secret)));

    const answers = await Promise.all(callers.map((caller) => caller.post(`${KEYS}/rotate-self`, {})));

    const [done, ...refused] = answers.toSorted((one, other) => one.status - other.status);
    expect(done!.status).toBe(200);
    expect(refused.map(({ status, headers }) => `${status} ${headers.get('x-error-reason')}`)).toEqual(
      Array(4).fill('400 secret_replaced'),
    );
    expect([await statusOf(secret), await statusOf(done!.body.data.secret)]).toEqual([200, 200]);
    const events = await query(
      await testDb(),
      sql`select from events where subject_id = ${id} and type = 'key.rotated'`,
    );
    expect(events).toHaveLength(1);
  });

  it('401 for a key that was revoked or has expired, or whose user was deactivated, and nothing changes', async () => {
    const past = new Date('2020-01-01');
    const ended = [
      { ...(await givenCaller(await givenServiceAccount(), { revoked_at: past })), reason: 'key_ended' },
      { ...(await givenCaller(await givenServiceAccount(), { expires_at: past })), reason: 'key_ended' },
      { ...(await givenCaller(await givenServiceAccount({ is_active: false }))), reason: 'credential_invalid' },
    ];

    for (const { id, caller, reason } of ended) {
      const before = await stored('api_keys', id);
      expect(await reasonOf(rotate(caller))).toBe(`401 ${reason}`);
      expect(await stored('api_keys', id)).toEqual(before);
    }
  });

  it('401 or 400, and nothing changes, if the key is revoked or its user deactivated at the same time', async () => {
    const end: ((row: { id: number; user_id: number }) => ReturnType<typeof sql>)[] = [
      ({ id }) => sql`update api_keys set revoked_at = now() where id = ${id}`,
      ({ user_id }) => sql`update users set is_active = false where id = ${user_id}`,
    ];
    for (const statementFor of end) {
      const service = await givenServiceAccount();
      const { id, secret } = await givenCaller(service);
      const callers = await Promise.all(Array.from({ length: 4 }, () => callerWith(secret)));
      const [answers] = await Promise.all([
        Promise.all(callers.map((caller) => caller.post(`${KEYS}/rotate-self`, {}))),
        query(await testDb(), statementFor({ id, user_id: service.id })),
      ]);

      const secrets = answers.flatMap(({ body }) => body.data?.secret ?? []);
      expect(secrets.length).toBeLessThanOrEqual(1);
      for (const each of [secret, ...secrets]) expect(await statusOf(each)).toBe(401);
    }
  });

  it('403 for a token, 422 for an overlap that is too short or too long', async () => {
    const { asSuperadmin } = await givenWorld();
    const { caller } = await givenCaller(await givenServiceAccount());

    expect(await reasonOf(rotate(asSuperadmin))).toBe('403 key_required');
    for (const previous_valid_hours of [0, 169])
      expect(await reasonOf(rotate(caller, { previous_valid_hours }))).toBe('422 invalid_input');
  });

  it('writes key.rotated with the key of the call, into the audit trail, too', async () => {
    const service = await givenServiceAccount();
    const { id, caller } = await givenCaller(service, { scopes: ['boards:read', 'cards:read'] });
    await rotate(caller, { scopes: ['cards:read'] });

    for (const table of ['events', 'audit_entries']) {
      const rows = await query(
        await testDb(),
        sql`select user_id, key_id, surface, data from ${sql.table(table)} where type = 'key.rotated' and subject_id = ${id}`,
      );
      expect(rows, table).toEqual([
        { user_id: service.id, key_id: id, surface: 'rpc', data: { user_id: service.id, fields: ['scopes'] } },
      ]);
    }
  });
});
