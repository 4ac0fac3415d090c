import { once } from 'node:events';
import { connect } from 'node:net';
import { type RawBuilder, sql } from 'kysely';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import type { Services } from '../../server/api/services.ts';
import { inputFor } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import { findCaller } from '../../server/domain/access/caller.ts';
import { hashKeySecret } from '../../server/security/apiKeys.ts';
import { makeCaller } from '../harness/caller.ts';
import { sampled } from '../harness/sample.ts';
import {
  countStatements,
  givenService,
  type TestService,
  testDatabase,
  testService,
  tokens,
} from '../harness/service.ts';
import { givenStartState } from '../harness/startStates.ts';
import { givenKey, givenMember, givenProject, givenToken, givenWorld, testDb } from '../harness/world.ts';

/**
 * A node remembers callers, and the statement of a call confirms them. Whatever changes in between, the answer is that of a node
 * which has never seen the caller.
 */

const JSON_TYPE = { 'content-type': 'application/json' };

const confirming = procedures.filter(({ meta }) => meta.confirms);

let knowing: TestService;
let unknowing: TestService;
beforeAll(async () => {
  [knowing, unknowing] = [await givenService(), await givenService()];
});

/** A member with a second project, a token and a key. */
async function givenCaller(procedure: Procedure, { by, ...state }: { by: 'token' | 'key'; superadmin?: boolean }) {
  const world = await givenWorld();
  const user = { ...world.users.member };
  const other = await givenProject();
  await givenMember(user, other, 'member');
  if (state.superadmin) await change(sql`update users set superadmin = true where id = ${user.id}`);
  const token = by === 'token' ? await givenToken(user) : undefined;
  const key = by === 'key' ? await givenKey(user) : undefined;
  const secret = token ?? key!.secret;
  const input = inputFor(procedure, await givenStartState(procedure, world));
  return {
    call: ({ url }: TestService) => makeCaller(url, secret).post(procedure.rest!.path, input),
    project: world.project,
    other,
    user,
    sessionId: token && tokens.read(token)!.sessionId,
    keyId: key?.id,
    secret,
  };
}
type GivenCaller = Awaited<ReturnType<typeof givenCaller>>;

const change = async (statement: RawBuilder<unknown>) => query(await testDb(), statement);

/** What a call may write. */
const countRows = async () =>
  (await change(sql`select (select count(*) from cards) as cards, (select count(*) from comments) as comments`))[0];

type Change = [title: string, by: 'token' | 'key', (given: GivenCaller) => RawBuilder<unknown>];

const ofUser =
  (set: RawBuilder<unknown>) =>
  ({ user }: GivenCaller) =>
    sql`update users set ${set} where id = ${user.id}`;
const ofKey =
  (set: RawBuilder<unknown>) =>
  ({ keyId }: GivenCaller) =>
    sql`update api_keys set ${set} where id = ${keyId}`;
const ofMember =
  (set: RawBuilder<unknown>) =>
  ({ user, project }: GivenCaller) =>
    sql`update members set ${set} where user_id = ${user.id} and project_id = ${project.id}`;

const BOTH = ['token', 'key'] as const;
const CHANGES: Change[] = [
  [
    'the session is revoked',
    'token',
    ({ sessionId }) => sql`update sessions set revoked_at = now() where id = ${sessionId}`,
  ],
  [
    'the session has ended',
    'token',
    ({ sessionId }) => sql`update sessions set expires_at = now() where id = ${sessionId}`,
  ],
  ['the session is removed', 'token', ({ sessionId }) => sql`delete from sessions where id = ${sessionId}`],
  ['the key is revoked', 'key', ofKey(sql`revoked_at = now()`)],
  ['the key has ended', 'key', ofKey(sql`expires_at = now()`)],
  ['the key has no scopes any more', 'key', ofKey(sql`scopes = '{}'`)],
  [
    'the key is bound to another project',
    'key',
    ({ keyId, other }) => sql`update api_keys set project_id = ${other.id} where id = ${keyId}`,
  ],
  [
    'the secret is rotated, and the previous one still works',
    'key',
    ({ keyId, secret }) => sql`
    update api_keys set previous_hash = ${hashKeySecret(secret)}, previous_expires_at = now() + interval '1 hour', secret_hash = ${`x${keyId}`} where id = ${keyId}`,
  ],
  [
    'the secret is rotated, and the previous one has ended',
    'key',
    ({ keyId, secret }) => sql`
    update api_keys set previous_hash = ${hashKeySecret(secret)}, previous_expires_at = now(), secret_hash = ${`x${keyId}`} where id = ${keyId}`,
  ],
  ...BOTH.flatMap((by): Change[] => [
    ['the user is deactivated', by, ofUser(sql`is_active = false`)],
    ['the user becomes a superadmin', by, ofUser(sql`superadmin = true`)],
    ['the user gets a rate limit of their own', by, ofUser(sql`rate_limit_per_minute = 77`)],
    [
      'another project becomes the default',
      by,
      ({ user, other }) => sql`update users set default_project_id = ${other.id} where id = ${user.id}`,
    ],
    ['the role is too low', by, ofMember(sql`role = 'viewer'`)],
    ['the role is higher', by, ofMember(sql`role = 'owner'`)],
    [
      'the membership ends',
      by,
      ({ user, project }) => sql`delete from members where user_id = ${user.id} and project_id = ${project.id}`,
    ],
    ['all memberships end', by, ({ user }) => sql`delete from members where user_id = ${user.id}`],
    [
      'the project is deactivated',
      by,
      ({ project }) => sql`update projects set is_active = false where id = ${project.id}`,
    ],
  ]),
];

describe.each(confirming.map((procedure) => [procedure.name, procedure] as const))('%s', (_, procedure) => {
  it.each(BOTH)('looks up the caller with a %s once', async (by) => {
    const { call } = await givenCaller(procedure, { by });

    expect((await call(knowing)).status).toBeLessThan(300);
    // The use of a key is stored with its first call in a minute.
    if (by === 'key') await change(sql`update api_keys set last_used_at = '2099-01-01'`);
    expect(await countStatements(() => call(knowing))).toBe(1);
  });

  it.each(sampled(CHANGES))('answers as a new node after %s (%s)', async (_, by, changeBy) => {
    const given = await givenCaller(procedure, { by });
    expect((await given.call(knowing)).status).toBeLessThan(300);
    await given.call(knowing);
    await change(changeBy(given));
    const before = await countRows();

    const known = await given.call(knowing);
    const after = await countRows();
    const unknown = await given.call(unknowing);

    expect(known.status).toBe(unknown.status);
    expect(known.headers.get('x-ratelimit-limit')).toBe(unknown.headers.get('x-ratelimit-limit'));
    if (known.status < 300) return;
    expect(known.body).toEqual(unknown.body);
    expect(after).toEqual(before);
  });

  it('looks up who has no default project any more each time', async () => {
    const given = await givenCaller(procedure, { by: 'token' });
    await given.call(knowing);
    await change(ofUser(sql`default_project_id = null`)(given));
    await given.call(knowing);

    expect(await countStatements(() => given.call(knowing))).toBe(2);
  });

  it('answers as a new node after a superadmin is none any more', async () => {
    const given = await givenCaller(procedure, { by: 'token', superadmin: true });
    await change(ofMember(sql`role = 'viewer'`)(given));
    expect((await given.call(knowing)).status).toBeLessThan(300);
    await change(ofUser(sql`superadmin = false`)(given));

    const known = await given.call(knowing);

    expect(known.status).toBe(procedure.access === 'viewer' ? 200 : 403);
    expect((await given.call(unknowing)).status).toBe(known.status);
  });

  it('counts a call of an ended session for the address, not for the user', async () => {
    const service = await givenService({ RATE_LIMIT_PER_MINUTE: '5' });
    const given = await givenCaller(procedure, { by: 'token' });
    await given.call(service);
    await change(sql`update sessions set revoked_at = now() where id = ${given.sessionId}`);

    const ended = await given.call(service);
    const again = makeCaller(service.url, await givenToken(given.user));

    expect(ended.status).toBe(401);
    expect(ended.headers.get('x-ratelimit-remaining')).toBe('4');
    const { headers } = await again.post('/services/operations/v1/operations/boards/list', {});
    expect(headers.get('x-ratelimit-remaining')).toBe('3');
  });

  it('401 before 400 and 422, also for a caller who is remembered', async () => {
    const given = await givenCaller(procedure, { by: 'token' });
    await given.call(knowing);
    await change(sql`update sessions set revoked_at = now() where id = ${given.sessionId}`);
    const caller = makeCaller(knowing.url, given.secret);

    for (const body of ['{', '[]', { id: 'none', group_id: 'none', card_id: 'none', tool_key: 5 }]) {
      const fresh = makeCaller(knowing.url, given.secret);
      expect((await fresh.post(procedure.rest!.path, body)).status).toBe(401);
    }
    expect((await caller.post(procedure.rest!.path, '{')).status).toBe(401);
  });

  it('refuses a wrong input once the caller is looked up', async () => {
    const given = await givenCaller(procedure, { by: 'token' });
    await given.call(knowing);
    const caller = makeCaller(knowing.url, given.secret);

    expect((await caller.post(procedure.rest!.path, '{')).status).toBe(400);
    expect((await caller.post(procedure.rest!.path, { tool_key: 5 })).status).toBe(422);
  });
});

describe('a caller who is remembered, and whose session was revoked', () => {
  const PATH = '/services/operations/v1/operations/cards/create';

  /** A service where each user has 20 calls, and what a second session of the user has left of them. */
  async function givenRevoked() {
    const service = await givenService({ RATE_LIMIT_PER_MINUTE: '20' });
    const { project, users } = await givenWorld();
    const token = await givenToken(users.member);
    expect((await makeCaller(service.url, token).post(PATH, { title: 'Before' })).status).toBe(201);
    await change(sql`update sessions set revoked_at = now() where id = ${tokens.read(token)!.sessionId}`);
    const other = makeCaller(service.url, await givenToken(users.member));
    const remaining = async () => Number((await other.post(PATH, { title: 'x' })).headers.get('x-ratelimit-remaining'));
    return { service, token, remaining, project };
  }

  it.each<[string, string, RequestInit]>([
    ['a wrong method', '/trpc/cards.create', { method: 'GET' }],
    ['an unknown method', '/trpc/cards.create', { method: 'PUT' }],
    ['a wrong kind', '/trpc/cards.create?kind=query', { method: 'POST', body: '{"json":{"title":"x"}}' }],
    ['no content type', '/trpc/cards.create', { method: 'POST', body: new Uint8Array([123, 125]) }],
    ['a wrong input', `/api${PATH}`, { method: 'POST', body: '{' }],
  ])('uses nothing of the limit of the user with %s', async (_, path, init) => {
    const { service, token, remaining } = await givenRevoked();
    const headers = { authorization: `Bearer ${token}`, ...(typeof init.body === 'string' && JSON_TYPE) };

    for (let call = 0; call < 3; call++) {
      const response = await fetch(service.url + path, { ...init, headers });
      expect(response.status).toBeGreaterThanOrEqual(400);
      await response.text();
    }

    expect(await remaining()).toBe(18);
  });

  it('gets a 401 before the body has come, and uses nothing of the limit of the user', async () => {
    const { service, token, remaining } = await givenRevoked();
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST /api${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n`,
    );

    const [answer] = await once(socket, 'data');
    socket.destroy();

    expect(String(answer)).toMatch(/^HTTP\/1.1 401 /);
    expect(await remaining()).toBe(18);
  });
});

it('a remembered caller gets a limit that was raised', async () => {
  const { url } = await givenService();
  const { users } = await givenWorld();
  const limitTo = (limit: number) =>
    change(sql`update users set rate_limit_per_minute = ${limit} where id = ${users.member.id}`);
  const caller = makeCaller(url, await givenToken(users.member));
  const statusOf = async (noun: string) =>
    (await caller.post(`/services/operations/v1/operations/${noun}/list`)).status;
  await limitTo(3);
  expect(await statusOf('boards')).toBe(200);
  await limitTo(100);

  // Tags are not remembered: these count by the new limit.
  for (let call = 0; call < 4; call++) expect(await statusOf('tags')).toBe(200);

  expect(await statusOf('boards')).toBe(200);
});

it('a fault is answered at once, without a further look for a remembered caller', async () => {
  const database = await testDatabase();
  const fail = () => {
    throw new Error('The database is gone.');
  };
  const findAgain = vi.fn((...call: Parameters<Services['findCaller']>) => findCaller(database.db, ...call));
  const { url } = await givenService(
    {},
    {
      database: { ...database, db: database.db.withPlugin({ transformQuery: fail, transformResult: fail }) },
      findCaller: findAgain,
    },
  );
  const { users } = await givenWorld();
  const caller = makeCaller(url, await givenToken(users.member));

  for (let call = 0; call < 3; call++)
    expect((await caller.post('/services/operations/v1/operations/boards/list')).status).toBe(500);

  expect(findAgain).toHaveBeenCalledTimes(1);
});

it('a token of one user with the session of another is a 401, although the session is remembered', async () => {
  const { users, asMember } = await givenWorld();
  expect((await asMember.post('/services/operations/v1/operations/boards/list')).status).toBe(200);
  const { sessionId } = tokens.read(asMember.token!)!;
  const { url } = await testService();

  const mixed = makeCaller(url, tokens.sign({ userId: users.owner.id, sessionId }));

  expect((await mixed.post('/services/operations/v1/operations/boards/list')).status).toBe(401);
});

it('are those that are called most', () => {
  expect(confirming.map(({ name }) => name)).toEqual(['boards.get', 'boards.list', 'cards.create', 'comments.create']);
});
