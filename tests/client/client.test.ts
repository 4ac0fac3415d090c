import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { type ClientOptions, createClient, isRefusal } from '../../client/client.ts';
import { query } from '../../server/database/query.ts';
import { errorOf, givenClient } from '../harness/client.ts';
import { codeAt, givenProtectedUser } from '../harness/codes.ts';
import { givenService, testService } from '../harness/service.ts';
import { givenMember, givenProject, givenToken, givenUser, PASSWORD, type TestUser, testDb } from '../harness/world.ts';

describe('a client that signs in', () => {
  it('signs in once, before its first calls', async () => {
    const { client, called } = await givenSigningIn();

    await Promise.all([client.boards.list.query(), client.tags.list.query({})]);
    await client.boards.list.query();

    expect(called()).toEqual(['auth.authenticate', 'boards.list,tags.list', 'boards.list']);
  });

  it('signs in again once for all calls with an expired token, and retries them', async () => {
    const { client, called, user } = await givenSigningIn();
    await client.boards.list.query();
    await givenExpiredSessions(user);

    const [{ card }] = await Promise.all([client.cards.create.mutate({ title: 'Kept' }), client.boards.list.query()]);

    expect(card.title).toBe('Kept');
    expect(called().filter((name) => name === 'auth.authenticate')).toHaveLength(2);
  });

  it('401 if the new token is refused too', async () => {
    const broken: typeof fetch = (address, request) =>
      fetch(address, { ...request, headers: { ...(request!.headers as object), authorization: 'Bearer broken' } });
    const { client, called } = await givenSigningIn({ fetch: broken });

    const error = await errorOf(client.boards.list.query());

    expect(error.status).toBe(401);
    expect(called()).toEqual(['auth.authenticate', 'boards.list', 'auth.authenticate', 'boards.list']);
  });

  it('passes the token to onSignIn, and later clients can use it', async () => {
    const onSignIn = vi.fn();
    const first = await givenSigningIn({ onSignIn });
    await first.client.boards.list.query();

    const [{ token, email }] = onSignIn.mock.lastCall!;
    const second = await givenSigningIn({ token });
    await second.client.boards.list.query();

    expect(email).toBe(first.user.email);
    expect(second.called()).toEqual(['boards.list']);
  });

  it('401 with a wrong password, without asking for a code', async () => {
    const code = vi.fn();
    const { email } = await givenUser();
    const { client } = await givenSigningIn({ signIn: { email, password: 'wrong', code } });

    const error = await errorOf(client.boards.list.query());

    expect(error).toMatchObject({ status: 401, reason: 'wrong_credentials' });
    expect(code).not.toHaveBeenCalled();
  });

  it('asks for the second factor code once while the device is remembered', async () => {
    const user = await givenProtectedUser();
    await givenMember(user, await givenProject(), 'member');
    const code = vi.fn(async () => codeAt(0));
    const { client, called } = await givenSigningIn({ signIn: { email: user.email, password: PASSWORD, code } });

    for (const _ of ['new', 'remembered', 'still remembered']) {
      await client.boards.list.query();
      await givenExpiredSessions(user);
    }

    expect(code).toHaveBeenCalledOnce();
    expect(called().filter((name) => name === 'auth.authenticate')).toHaveLength(4);
  });

  it('accepts a recovery code', async () => {
    const { email } = await givenProtectedUser({ recoveryCodes: ['a-code'] });
    const signIn = { email, password: PASSWORD, code: 'a-code', is_recovery: true };
    const { client } = await givenSigningIn({ signIn });

    expect(await client.projects.listOwn.query({})).toMatchObject({ projects: [] });
  });

  it('401 with a wrong code', async () => {
    const { email } = await givenProtectedUser();
    const { client } = await givenSigningIn({ signIn: { email, password: PASSWORD, code: () => '000000' } });

    expect(await errorOf(client.boards.list.query())).toMatchObject({
      status: 401,
      reason: 'code_wrong',
      message: 'The code is wrong, or was used before.',
    });
  });
});

describe('a client without a sign-in', () => {
  it('401 without a token, and no retry; 200 with a token', async () => {
    const { client, called, user } = await givenSigningIn({ signIn: undefined });

    expect((await errorOf(client.boards.list.query())).status).toBe(401);
    expect(called()).toEqual(['boards.list']);

    const { client: another } = await givenSigningIn({ signIn: undefined, token: await givenToken(user) });
    expect(await another.boards.list.query()).toEqual({ boards: [] });
  });
});

describe('a client of several projects', () => {
  it('acts in that of `as`, or of the call', async () => {
    const { client, user } = await givenSigningIn();
    const [first, second] = [await givenProject(), await givenProject()];
    for (const project of [first, second]) await givenMember(user, project, 'member');

    const [one, two] = await Promise.all([
      client.as({ projectId: first.id }).tags.create.mutate({ name: 'One' }),
      client.tags.create.mutate({ name: 'Two' }, { projectId: second.id }),
    ]);

    expect([one.tag.project_id, two.tag.project_id]).toEqual([first.id, second.id]);
    const { id: projectId } = await givenProject();
    expect(await errorOf(client.as({ projectId }).boards.list.query())).toMatchObject({
      status: 403,
    });
  });

  it('reads all rows of a list, page by page', async () => {
    const { client, called } = await givenSigningIn();
    for (const name of ['A', 'B', 'C']) await client.tags.create.mutate({ name });

    const names: string[] = [];
    for await (const { name } of client.tags.list.each({ limit: 2 })) names.push(name);

    expect(names).toEqual(['A', 'B', 'C']);
    expect(called().filter((name) => name === 'tags.list')).toHaveLength(2);
  });

  it('goes on at a stored cursor', async () => {
    const { client } = await givenSigningIn();
    for (const name of ['A', 'B', 'C']) await client.tags.create.mutate({ name });

    const first = await client.tags.list.each({ limit: 2 }).pages().next();
    const cursor = first.value!.next_cursor;
    const rest: string[] = [];
    for await (const { tags } of client.tags.list.each({ limit: 2, cursor }).pages())
      rest.push(...tags.map(({ name }) => name));

    expect(first.value!.tags.map(({ name }) => name)).toEqual(['A', 'B']);
    expect(rest).toEqual(['C']);
  });
});

describe('withMeta', () => {
  it('has the request id, the quota, and whether the response was replayed', async () => {
    const { client, header } = await givenSigningIn();
    const create = () => client.tags.create.mutate.withMeta({ name: 'Once' }, { idempotencyKey: 'once' });

    const first = await create();
    const [again, other] = await Promise.all([create(), client.tags.create.mutate.withMeta({ name: 'Other' })]);

    expect(first.meta).toEqual({
      ...{ requestId: header('x-request-id')[1], replayed: false, attempts: 1 },
      quota: { limit: expect.any(Number), remaining: expect.any(Number) },
    });
    expect([again.meta.replayed, other.meta.replayed]).toEqual([true, false]);
    expect(again.data).toEqual(first.data);
    expect(again.meta.requestId).toBe(other.meta.requestId);
    expect(first.meta.quota!.remaining - again.meta.quota!.remaining).toBe(2);
  });
});

describe('a call of the wrong kind, as JavaScript allows it', () => {
  it('400 for a mutation called as a query: nothing is executed, and it is not retried', async () => {
    const { client, called } = await givenSigningIn();
    const { query } = client.cards.create as unknown as { query: (input: object) => Promise<unknown> };

    const [error, { boards }] = await Promise.all([
      errorOf(query({ title: 'Never' })),
      // In the same batch.
      client.boards.list.query(),
    ]);

    expect(error).toMatchObject({
      status: 400,
      reason: 'wrong_kind',
      message: 'cards.create is a mutation: call it with mutate.',
    });
    expect(boards).toEqual([]);
    expect(called()).toEqual(['auth.authenticate', 'cards.create,boards.list']);
    expect((await client.cards.list.query()).cards).toEqual([]);
  });

  it('400 for a query called as a mutation', async () => {
    const { client } = await givenSigningIn();
    const { mutate } = client.boards.list as unknown as { mutate: () => Promise<unknown> };

    const [error, { tag }] = await Promise.all([errorOf(mutate()), client.tags.create.mutate({ name: 'Kept' })]);

    expect(error).toMatchObject({ status: 400, message: 'boards.list is a query: call it with query.' });
    expect(tag.name).toBe('Kept');
  });

  it('400 for a mutation that is read row by row', async () => {
    const { client } = await givenSigningIn();
    const { each } = client.cards.create as unknown as { each: (input: object) => AsyncGenerator };

    expect(await errorOf(each({ title: 'Never' }).next())).toMatchObject({ reason: 'wrong_kind' });
  });
});

describe('an error', () => {
  it('has the id of the request, which the answer has too', async () => {
    const { client, header } = await givenSigningIn({ signIn: undefined });

    const { requestId } = await errorOf(client.boards.list.query());

    expect(header('x-request-id')).toEqual([requestId]);
  });

  it('has the status, the reason, the message and the fields of a 422', async () => {
    const { client } = await givenSigningIn();

    const error = await errorOf(client.cards.create.mutate({ title: '', group_id: 0 }));

    expect(isRefusal(error)).toBe(true);
    expect(error).toMatchObject({
      name: 'DeckhandError',
      status: 422,
      reason: 'invalid_input',
      message: 'title is required. (and 1 more)',
      fields: { title: ['title is required.'], group_id: ['group_id must be at least 1.'] },
    });
  });

  it('has no fields otherwise', async () => {
    const { client } = await givenSigningIn();

    expect(await errorOf(client.cards.get.query({ id: 2_147_483_647 }))).toMatchObject({
      status: 404,
      reason: 'not_found',
      fields: {},
    });
  });

  it('has no status and no reason when no answer came, and says what to check', async () => {
    const error = await errorOf(createClient({ url: 'http://127.0.0.1:2', retries: 0 }).boards.list.query());

    expect(isRefusal(error)).toBe(false);
    expect(error.status).toBeUndefined();
    expect(error.reason).toBeUndefined();
    expect(error.message).toMatch(
      /^No response \(fetch failed: connect ECONNREFUSED 127\.0\.0\.1:2\)\. Check the url, and that the service runs\./,
    );
  });

  it('429 with the seconds until a retry', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1' });
    const client = createClient({ url, retries: 0 });
    await errorOf(client.boards.list.query());

    const error = await errorOf(client.boards.list.query());

    expect(error.status).toBe(429);
    expect(error.retryAfterSeconds).toBeGreaterThanOrEqual(1);
    expect(error.retryAfterSeconds).toBeLessThanOrEqual(60);
  });
});

/** A client of the test service with a new user. */
async function givenSigningIn(options: Partial<ClientOptions> = {}) {
  const { url } = await testService();
  const user = await givenUser({ project: await givenProject() });
  const signIn = { email: user.email, password: PASSWORD };
  return { user, ...givenClient({ url, signIn, ...options }) };
}

async function givenExpiredSessions({ id }: TestUser) {
  await query(await testDb(), sql`update sessions set expires_at = now() where user_id = ${id}`);
}
