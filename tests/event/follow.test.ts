import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createTRPCClient, httpSubscriptionLink } from '@trpc/client';
import { sql } from 'kysely';
import { pino } from 'pino';
import superjson from 'superjson';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { createClient, type DeckhandError } from '../../client/client.ts';
import type { AppRouter } from '../../client/router.ts';
import { type Message, readMessages } from '../../client/sse.ts';
import { query, transact } from '../../server/database/query.ts';
import { makeFollower } from '../../server/domain/event/follower.ts';
import { makeEventHub } from '../../server/domain/event/hub.ts';
import { openCounters } from '../../server/limits/counters.ts';
import { makeRateLimit, overLimit, type RateLimit } from '../../server/limits/rateLimit.ts';
import type { FairQueue } from '../../server/runtime/fairQueue.ts';
import { makeCaller } from '../harness/caller.ts';
import { eventSourceWith } from '../harness/eventSource.ts';
import { CARD_DATA, feedComplete } from '../harness/events.ts';
import { isWhole } from '../harness/sample.ts';
import { countStatements, givenService, scrape, type TestService } from '../harness/service.ts';
import { allStatementsDuring } from '../harness/statements.ts';
import { givenKey, givenMember, givenProject, givenToken, givenWorld, testDb, type World } from '../harness/world.ts';

const STREAM = '/api/services/platforms/v1/events/stream';
const LIST = '/services/platforms/v1/events/list';

const opened: AbortController[] = [];
const closeStreams = () => {
  for (const stream of opened.splice(0)) stream.abort();
};

type Options = { query?: string; headers?: Record<string, string>; path?: string };

/** Opens a stream, and waits until it has begun. */
async function follow(
  { url }: { url: string },
  token: string | undefined,
  { query = '', headers, path = STREAM }: Options = {},
) {
  const closing = new AbortController();
  opened.push(closing);
  const response = await fetch(`${url}${path}${query}`, {
    headers: { accept: 'text/event-stream', ...(token && { authorization: `Bearer ${token}` }), ...headers },
    signal: closing.signal,
  });
  const messages = readMessages(response.body!);
  const begin = (await messages.next()).value as Message;

  const next = async (): Promise<Message | undefined> => {
    for (;;) {
      const { value, done } = await messages.next();
      if (done || (value as Message).data !== '') return value as Message | undefined;
    }
  };
  const take = async (count: number) => {
    const taken: Message[] = [];
    while (taken.length < count) taken.push((await next())!);
    return taken;
  };
  return { response, begin, next, take, close: () => closing.abort() };
}

const dataOf = (messages: (Message | undefined)[]) => messages.map((message) => JSON.parse(message!.data));
const namesOf = (messages: Message[]) => dataOf(messages).map(({ subject_id }) => subject_id);

const createTag = async (world: World, who: 'asMember' | 'asOutsider' = 'asMember') =>
  (await world[who].rpc.tags.create.mutate({ name: 'A tag' })).tag.id;

async function createTags(world: World, count: number): Promise<number[]> {
  const ids: number[] = [];
  while (ids.length < count) ids.push(await createTag(world));
  return ids;
}

async function givenFollowed(): Promise<{ service: TestService; world: World }> {
  const service = await givenService();
  return { service, world: await givenWorld(service) };
}

const followersOf = async ({ url }: TestService) => Number(/^deckhand_followers (\d+)$/m.exec(await scrape(url))?.[1]);

it('a cursor ahead of the feed does not move the hub there: others at the end of the feed can join', async () => {
  const signal = { listen: () => undefined, send: () => undefined, close: () => undefined };
  const log = pino({ level: 'silent' });
  const hub = makeEventHub({ db: await testDb(), log, keyMaxDays: undefined, signal, mostFollowers: 10 });
  const end = { transaction: '100', id: '9007199254740991', seconds: 1 };
  const at = (place: typeof end) =>
    makeFollower({ userId: 1, credential: { name: 'any' }, place, project: undefined, types: null });

  expect(hub.join(at({ ...end, id: '9'.repeat(18) }), end)).toBe(true);
  expect(hub.join(at(end), end)).toBe(true);
  expect(hub.join(at({ ...end, transaction: '99' }), end)).toBe(false);
  hub.close();
});

it('a follower that was looked up while others came is refused, too, of one user and of all', async () => {
  const signal = { listen: () => undefined, send: () => undefined, close: () => undefined };
  const log = pino({ level: 'silent' });
  const hub = makeEventHub({ db: await testDb(), log, keyMaxDays: undefined, signal, mostFollowers: 22 });
  const place = { transaction: '100', id: '1', seconds: 1 };
  const add = (userId: number) =>
    hub.add(makeFollower({ userId, credential: { name: 'any' }, place, project: undefined, types: null }));

  for (let count = 0; count < 20; count++) add(1);

  expect(() => add(1)).toThrow('You have too many event streams.');
  for (const userId of [2, 3]) add(userId);
  expect(() => add(4)).toThrow('There are too many event streams.');
  expect(hub.countFollowers()).toBe(22);
  hub.close();
});

describe('GET …/events/stream', () => {
  afterEach(closeStreams);

  it('sends the events of the projects of the caller, in order and as events/list does', async () => {
    const { service, world } = await givenFollowed();
    const stream = await follow(service, world.asViewer.token);

    await createTag(world, 'asOutsider');
    const ids = await createTags(world, 3);
    const sent = await stream.take(3);

    expect(stream.response.headers.get('content-type')).toBe('text/event-stream');
    expect(namesOf(sent)).toEqual(ids);
    expect(sent.map(({ event }) => event)).toEqual(['tag.created', 'tag.created', 'tag.created']);
    const listed = await world.asViewer.post(LIST, { after: stream.begin.id });
    expect(dataOf(sent)).toEqual(listed.body.data.events);
  });

  it('sends only the wanted types and project', async () => {
    const { service, world } = await givenFollowed();
    const { id } = world.project;
    const stream = await follow(service, world.asSuperadmin.token, {
      query: `?types=board.created,tag.deleted&project_id=${id}`,
    });

    await createTag(world);
    await world.asOutsider.rpc.boards.create.mutate({ title: 'Elsewhere' });
    const { board } = await world.asMember.rpc.boards.create.mutate({ title: 'Here' });

    expect(namesOf(await stream.take(1))).toEqual([board.id]);
  });

  it.each(['Last-Event-ID', 'after'])('resumes by %s while events happen, without gap or repeat', async (by) => {
    const { service, world } = await givenFollowed();
    const first = await follow(service, world.asViewer.token);
    const ids = await createTags(world, 3);
    const [, second] = await first.take(2);
    first.close();

    const writing = createTags(world, 20);
    const resumed = await follow(service, world.asViewer.token, {
      ...(by === 'after' ? { query: `?after=${second!.id}` } : { headers: { [by]: second!.id! } }),
    });
    const sent = namesOf(await resumed.take(21));

    expect(sent).toEqual([ids[2], ...(await writing)]);
  });

  it('counts as a call for each further page of a catch-up, and waits above the limit', async () => {
    const service = await givenService({ RATE_LIMIT_PER_MINUTE: '4' });
    const world = await givenWorld(service);
    const { cursor } = await world.asViewer.rpc.events.list.query({ after: 'latest' });
    await insertEvents(world, 1700);

    const stream = await follow(service, world.asViewer.token, { query: `?after=${cursor}` });
    await stream.take(1500);
    const { status, headers } = await world.asViewer.post(LIST);

    // One call for the cursor, one for the stream with its first page, and two for further pages.
    expect([status, headers.get('x-error-reason')]).toEqual([429, 'over_rate_limit']);
    let isWaiting = true;
    const further = stream.take(1).then(
      () => (isWaiting = false),
      () => undefined,
    );
    await query(await testDb(), sql`update users set rate_limit_per_minute = 1000 where id = ${world.users.member.id}`);
    const other = await follow(service, world.asMember.token, { query: `?after=${cursor}` });
    await other.take(1700);
    expect(isWaiting).toBe(true);
    for (const each of [stream, other]) each.close();
    await further;
    await expect.poll(() => followersOf(service)).toBe(0);
  });

  it('goes on after the minute in which it was above the limit', async () => {
    let refusals = 0;
    const rateLimit = makeRateLimit(await openCounters(undefined, pino({ level: 'silent' })), 1000);
    const countWhile: RateLimit['countWhile'] = (counted, calls, work, note) => {
      if (refusals++ === 0) throw overLimit({ retryAfterSeconds: 1 });
      return rateLimit.countWhile(counted, calls, work, note);
    };
    const service = await givenService({}, { rateLimit: { ...rateLimit, countWhile } });
    const world = await givenWorld(service);
    const { cursor } = await world.asViewer.rpc.events.list.query({ after: 'latest' });
    await insertEvents(world, 1200);

    const stream = await follow(service, world.asViewer.token, { query: `?after=${cursor}` });

    expect(await stream.take(1200)).toHaveLength(1200);
    expect(refusals).toBeGreaterThan(1);
  });

  it('sends events of webhooks and invitations to owners alone, also after a role has changed', async () => {
    const { service, world } = await givenFollowed();
    const { users, project } = world;
    const begin = await world.asViewer.rpc.events.list.query({ after: 'latest' });
    const [viewer, owner] = [
      await follow(service, world.asViewer.token),
      await follow(service, world.asOwner.token, { query: `?project_id=${project.id}` }),
    ];
    const invite = () => world.asSuperadmin.rpc.members.invite.mutate(invitation());
    const invitation = () => ({
      project_id: project.id,
      email: `${randomUUID()}@example.test`,
      role: 'viewer' as const,
    });
    const promote = (role: 'viewer' | 'owner') =>
      world.asSuperadmin.rpc.members.set.mutate({ project_id: project.id, user_id: users.viewer.id, role });

    const typesOf = (messages: Message[]) => messages.map(({ event }) => event);
    const [invited, updated, created] = ['invitation.created', 'member.updated', 'tag.created'];

    await invite();
    await createTag(world);
    expect(typesOf(await viewer.take(1))).toEqual([created]);
    await promote('owner');
    expect(typesOf(await viewer.take(1))).toEqual([updated]);
    await invite();
    expect(typesOf(await viewer.take(1))).toEqual([invited]);
    await promote('viewer');
    expect(typesOf(await viewer.take(1))).toEqual([updated]);
    await invite();
    await createTag(world);

    expect(typesOf(await viewer.take(1))).toEqual([created]);
    expect(typesOf(await owner.take(7))).toEqual([invited, created, updated, invited, updated, invited, created]);
    const resumed = await follow(service, world.asViewer.token, { query: `?after=${begin.cursor}` });
    expect(typesOf(await resumed.take(4))).toEqual([created, updated, updated, created]);
  });

  it('sends members nothing that is outside of projects: sign-outs of others, and templates', async () => {
    const { service, world } = await givenFollowed();
    const stream = await follow(service, world.asViewer.token);

    await world.asOutsider.rpc.account.signOut.mutate();
    await world.asSuperadmin.rpc.masterBoards.create.mutate({ title: 'Template' });
    const id = await createTag(world);

    expect(dataOf(await stream.take(1))).toMatchObject([{ type: 'tag.created', subject_id: id }]);
  });

  it('sends a key of a superadmin without the scope admin what its user sees as a member', async () => {
    const { service, world } = await givenFollowed();
    const { superadmin } = world.users;
    await givenMember(superadmin, world.project, 'viewer');
    const stream = await follow(service, (await givenKey(superadmin, { scopes: ['events:read'] })).secret);

    await createTag(world, 'asOutsider');
    const id = await createTag(world);

    expect(namesOf(await stream.take(1))).toEqual([id]);
  });

  it('begins with an id, so that nothing is missed before the first event', async () => {
    const { service, world } = await givenFollowed();
    const first = await follow(service, world.asViewer.token);
    first.close();
    const id = await createTag(world);

    const resumed = await follow(service, world.asViewer.token, { headers: { 'Last-Event-ID': first.begin.id! } });

    expect(namesOf(await resumed.take(1))).toEqual([id]);
  });

  it('catches up over several pages', async () => {
    const { service, world } = await givenFollowed();
    const first = await follow(service, world.asViewer.token);
    first.close();
    await insertEvents(world, 1200);

    const resumed = await follow(service, world.asViewer.token, { query: `?after=${first.begin.id}` });
    const sent = await resumed.take(1200);

    expect(namesOf(sent)).toEqual(Array.from({ length: 1200 }, (_, at) => at + 1));
    const live = await createTag(world);
    expect(namesOf(await resumed.take(1))).toEqual([live]);
  });

  it('reads new events once for all followers', async () => {
    const { service, world } = await givenFollowed();
    const streams = await Promise.all(Array.from({ length: 15 }, () => follow(service, world.asViewer.token)));
    const id = await createTag(world);
    for (const stream of streams) expect(namesOf(await stream.take(1))).toEqual([id]);

    const sent = await allStatementsDuring(async () => {
      const next = await createTag(world);
      for (const stream of streams) expect(namesOf(await stream.take(1))).toEqual([next]);
    });

    expect(sent.length).toBeLessThan(15);
  });

  it('gives a new member the events of the project', async () => {
    const { service, world } = await givenFollowed();
    const stream = await follow(service, world.asOutsider.token);

    await givenMember(world.users.outsider, world.project, 'viewer');
    const found = stream.take(1);
    let isFound = false;
    void found.then(() => {
      isFound = true;
    });
    await expect
      .poll(async () => {
        await createTag(world);
        return isFound;
      })
      .toBe(true);

    expect(dataOf(await found)).toMatchObject([{ project_id: world.project.id }]);
  });
});

/** Many events of the project at once, with large data. */
async function insertEvents({ project }: World, count: number, ids: number[] = []): Promise<void> {
  await query(
    await testDb(),
    sql`insert into events (type, project_id, surface, subject_id, data)
      select 'card.moved', ${project.id}, 'rest', n, ${CARD_DATA} || ${JSON.stringify({ ids })}::jsonb from generate_series(1, ${count}::int) n`,
  );
  // Or a stream that begins gets them as live ones.
  await feedComplete();
}

// They wait for the hub, each for that of its own service.
describe.concurrent('a stream ends', () => {
  afterAll(closeStreams);

  it.each([STREAM, '/trpc/events.follow'])(
    'without an error after a fault, so that clients reconnect: %s',
    async (path) => {
      let calls = 0;
      const run: FairQueue['run'] = async (_key, work) => {
        if (++calls === 2) throw new Error('A page could not be read.');
        return work();
      };
      const { service, world } = await givenFollowed();
      const { begin, close } = await follow(service, world.asViewer.token);
      close();
      const faulty = await givenService({}, { queue: { run, load: () => ({ running: 0, waiting: 0 }) } });

      const stream = await follow(faulty, world.asViewer.token, { path, headers: { 'last-event-id': begin.id! } });

      expect(stream.response.status).toBe(200);
      expect(await stream.next()).toBeUndefined();
      expect(calls).toBe(2);
    },
  );

  it('after a sign-out', async () => {
    const { service, world } = await givenFollowed();
    const stream = await follow(service, world.asViewer.token);

    await world.asViewer.rpc.account.signOut.mutate();

    expect(await stream.next()).toBeUndefined();
  });

  it('when its session has expired', async () => {
    const { service, world } = await givenFollowed();
    const stream = await follow(service, world.asViewer.token);

    await query(await testDb(), sql`update sessions set expires_at = now() where user_id = ${world.users.viewer.id}`);

    expect(await stream.next()).toBeUndefined();
  });

  it('when its key is revoked, or rotated without grace', async () => {
    const { service, world } = await givenFollowed();
    const [revoked, rotated] = [await givenKey(world.users.viewer), await givenKey(world.users.viewer)];
    const streams = [await follow(service, revoked.secret), await follow(service, rotated.secret)];

    await query(await testDb(), sql`update api_keys set revoked_at = now() where id = ${revoked.id}`);
    await query(await testDb(), sql`update api_keys set secret_hash = 'another' where id = ${rotated.id}`);

    for (const stream of streams) expect(await stream.next()).toBeUndefined();
  });

  it('when its key was rotated and the grace is over, but not before', async () => {
    const { service, world } = await givenFollowed();
    const { id, secret } = await givenKey(world.users.viewer);
    const stream = await follow(service, secret);
    await makeCaller(service.url, secret).rpc.keys.rotateSelf.mutate({ previous_valid_hours: 1 });
    const tag = await createTag(world);
    expect(namesOf(await stream.take(1))).toEqual([tag]);

    await query(await testDb(), sql`update api_keys set previous_expires_at = now() where id = ${id}`);

    expect(await stream.next()).toBeUndefined();
  });

  it('when a rotation takes the scope from its key', async () => {
    const { service, world } = await givenFollowed();
    const { secret } = await givenKey(world.users.viewer, { scopes: ['events:read', 'cards:read'] });
    const stream = await follow(service, secret);

    await makeCaller(service.url, secret).rpc.keys.rotateSelf.mutate({ scopes: ['cards:read'] });

    expect(await stream.next()).toBeUndefined();
  });

  it('when the user is deactivated, with a session or a key', async () => {
    const { service, world } = await givenFollowed();
    const { secret } = await givenKey(world.users.viewer);
    const streams = [await follow(service, world.asViewer.token), await follow(service, secret)];

    await query(await testDb(), sql`update users set is_active = false where id = ${world.users.viewer.id}`);

    for (const stream of streams) expect(await stream.next()).toBeUndefined();
  });

  it('when its project is deactivated, while one of all projects goes on with the others', async () => {
    const { service, world } = await givenFollowed();
    const other = await givenProject();
    await givenMember(world.users.viewer, other, 'viewer');
    const [named, all] = [
      await follow(service, world.asViewer.token, { query: `?project_id=${world.project.id}` }),
      await follow(service, world.asViewer.token),
    ];

    await query(await testDb(), sql`update projects set is_active = false where id = ${world.project.id}`);
    expect(await named.next()).toBeUndefined();
    await insertEvents(world, 1);
    const { tag } = await world.asSuperadmin.in(other.id).rpc.tags.create.mutate({ name: 'Seen' });

    expect(dataOf(await all.take(1))).toMatchObject([{ project_id: other.id, subject_id: tag.id }]);
  });

  it('without its project, while one of all projects goes on with the others', async () => {
    const { service, world } = await givenFollowed();
    const other = await givenProject();
    await givenMember(world.users.viewer, other, 'viewer');
    const [named, all] = [
      await follow(service, world.asViewer.token, { query: `?project_id=${world.project.id}` }),
      await follow(service, world.asViewer.token),
    ];

    await world.asOwner.rpc.members.remove.mutate({ user_id: world.users.viewer.id, project_id: world.project.id });
    expect(await named.next()).toBeUndefined();
    await createTag(world);
    const { tag } = await world.asSuperadmin.in(other.id).rpc.tags.create.mutate({ name: 'Seen' });

    const seen: number[] = [];
    while (!seen.includes(tag.id))
      seen.push(...namesOf((await all.take(1)).filter(({ event }) => event === 'tag.created')));
    expect(seen).toEqual([tag.id]);
  });

  it('before the next event, if a later version has taken the access with an event that this one does not know', async () => {
    const { service, world } = await givenFollowed();
    const { project, users } = world;
    const stream = await follow(service, world.asViewer.token, { query: `?project_id=${project.id}` });

    await transact(await testDb(), async (db) => {
      await query(db, sql`delete from members where user_id = ${users.viewer.id}`);
      await query(
        db,
        sql`insert into events (type, project_id, surface) values ('member.banished', ${project.id}, 'rest')`,
      );
    });
    await createTag(world);

    expect(await stream.next()).toBeUndefined();
  });

  it('at once when the service stops, and a new one too, so that clients go elsewhere', async () => {
    const { service, world } = await givenFollowed();
    const stream = await follow(service, world.asViewer.token);

    const drained = service.app.drain(10_000);
    expect(await stream.next()).toBeUndefined();
    const again = await follow(service, world.asViewer.token);

    expect(again.begin.id).toMatch(/^\S+$/);
    expect(await again.next()).toBeUndefined();
    expect(await drained).toBe(true);
  });
});

describe('a stream ends, on its own', () => {
  afterEach(closeStreams);

  it.runIf(isWhole)('for a reader that does not read, also when the service stops; it can resume', async () => {
    const { service, world } = await givenFollowed();
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(`GET ${STREAM} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.asViewer.token}\r\n\r\n`);
    const [head] = await once(socket, 'data');
    socket.pause();
    await expect.poll(() => followersOf(service)).toBe(1);

    // More than the buffers of the connection hold.
    const ids = Array.from({ length: 2000 }, (_, at) => 1_000_000 + at);
    for (let times = 0; times < 6; times++) await insertEvents(world, 200, ids);

    await expect.poll(() => followersOf(service)).toBe(0);
    expect(socket.destroyed).toBe(false);
    const [, id] = /^id: (\S+)$/m.exec(String(head)) ?? [];
    const resumed = await follow(service, world.asViewer.token, { headers: { 'Last-Event-ID': id! } });
    expect(await resumed.take(1200)).toHaveLength(1200);
    resumed.close();
    // Cut at the limit, it would not be complete in time for the test.
    expect(await service.app.drain(600_000)).toBe(true);
    socket.destroy();
  });
});

describe('refusals', () => {
  afterEach(closeStreams);

  const refused = async (
    world: World,
    service: TestService,
    query: string,
    token = world.asViewer.token,
    method = 'GET',
  ) => {
    const response = await fetch(`${service.url}${STREAM}${query}`, {
      method,
      headers: { ...(token && { authorization: `Bearer ${token}` }) },
    });
    return {
      status: response.status,
      reason: response.headers.get('x-error-reason'),
      body: (await response.json()) as object,
    };
  };

  it('have the usual statuses and bodies, before the stream begins', async () => {
    const { service, world } = await givenFollowed();
    const { secret } = await givenKey(world.users.viewer, { scopes: ['tags:read'] });

    expect(await refused(world, service, '', '')).toMatchObject({ status: 401, reason: 'not_signed_in' });
    expect(await refused(world, service, '', secret)).toMatchObject({ status: 403, reason: 'scope_missing' });
    expect(await refused(world, service, `?project_id=${world.otherProject.id}`)).toMatchObject({ status: 403 });
    expect(await refused(world, service, '?types=nothing')).toMatchObject({
      status: 422,
      body: { errors: { 'types.0': [expect.any(String)] } },
    });
    expect(await refused(world, service, '?project_id=x')).toMatchObject({ status: 422 });
    expect(await refused(world, service, '?after=x')).toMatchObject({
      status: 422,
      reason: 'cursor_invalid',
      body: { errors: { after: [expect.any(String)] } },
    });
    expect(await refused(world, service, '', world.asViewer.token, 'POST')).toMatchObject({ status: 405 });
    expect(await followersOf(service)).toBe(0);
  });

  const remainingCalls = async ({ asViewer }: World) =>
    Number((await asViewer.post(LIST, { after: 'latest' })).headers.get('x-ratelimit-remaining'));

  it('429 for the 21st stream of a user, until one is closed', async () => {
    const { service, world } = await givenFollowed();
    const streams = await Promise.all(Array.from({ length: 20 }, () => follow(service, world.asViewer.token)));

    const begun = await remainingCalls(world);
    const refuse = () =>
      countStatements(async () => {
        const { status, reason } = await refused(world, service, '?project_id=1&after=x');
        expect([status, reason]).toEqual([429, 'too_many_at_once']);
      });
    const statements = [await refuse(), await refuse(), await refuse()];
    // Each counts, and nothing but its caller was read.
    expect(await remainingCalls(world)).toBe(begun - 4);
    expect(statements).toEqual([1, 1, 1]);
    streams[0]!.close();

    await expect.poll(() => followersOf(service)).toBe(19);
    await follow(service, world.asViewer.token);
    expect(await followersOf(service)).toBe(20);
  });

  it('of RPC are messages of the stream for EventSource, and JSON for others', async () => {
    const { service, world } = await givenFollowed();
    const path = '/trpc/events.follow';

    const { response, begin } = await follow(service, undefined, { path });
    const plain = await fetch(service.url + path);
    const posted = await fetch(service.url + path, { method: 'POST' });
    const batched = await fetch(`${service.url}${path}?batch=1`, {
      headers: { authorization: `Bearer ${world.asViewer.token}` },
    });

    expect([response.status, plain.status, posted.status, batched.status]).toEqual([200, 401, 405, 400]);
    expect(begin.event).toBe('serialized-error');
    expect(JSON.parse(begin.data).json.data).toMatchObject({ httpStatus: 401, reason: 'not_signed_in' });
  });
});

describe('httpSubscriptionLink', () => {
  const subscribe = (url: string, token: string, input: object = {}) => {
    const headers = { authorization: `Bearer ${token}` };
    const link = httpSubscriptionLink({
      url: `${url}/trpc`,
      transformer: superjson,
      EventSource: eventSourceWith(headers) as unknown as typeof EventSource,
    });
    const client = createTRPCClient<AppRouter>({ links: [link] });
    const events: { id: string; data: { subject_id: number | null; created_at: Date } }[] = [];
    const errors: unknown[] = [];
    const started = Promise.withResolvers<void>();
    const subscription = client.events.follow.subscribe(input, {
      onStarted: () => started.resolve(),
      onData: (event) => void events.push(event),
      onError: (error) => void errors.push(error),
    });
    return { events, errors, started: started.promise, subscription };
  };

  it('gets events with dates, and resumes by id', async () => {
    const { service, world } = await givenFollowed();
    const { events, started, subscription } = subscribe(service.url, world.asViewer.token!);
    await started;
    const ids = await createTags(world, 3);
    await expect.poll(() => events.map(({ data }) => data.subject_id)).toEqual(ids);
    subscription.unsubscribe();

    const resumed = subscribe(service.url, world.asViewer.token!, { lastEventId: events[0]!.id });

    await expect.poll(() => resumed.events.map(({ data }) => data.subject_id)).toEqual(ids.slice(1));
    expect(events[0]!.data.created_at).toBeInstanceOf(Date);
    resumed.subscription.unsubscribe();
  });

  it('is told why it may not go on', async () => {
    const { service, world } = await givenFollowed();
    const { errors, started } = subscribe(service.url, world.asViewer.token!);
    await started;

    await world.asViewer.rpc.account.signOut.mutate();

    await expect.poll(() => errors).toMatchObject([{ data: { httpStatus: 401, reason: 'credential_invalid' } }]);
  });
});

describe('client.events.follow', () => {
  it('reads events of these types until the loop breaks', async () => {
    const { service, world } = await givenFollowed();
    const client = createClient({ url: service.url, token: world.asViewer.token });
    const events = client.events.follow({ types: ['tag.created'] });
    const first = events.next();
    await expect.poll(() => followersOf(service)).toBe(1);

    const ids = await createTags(world, 3);
    const seen = [(await first).value!];
    for await (const event of events) {
      seen.push(event);
      if (seen.length === 3) break;
    }

    expect(seen.map(({ subject_id }) => subject_id)).toEqual(ids);
    expect(seen[0]!.created_at).toBeInstanceOf(Date);
    await expect.poll(() => followersOf(service)).toBe(0);
  });

  it('goes on behind the cursor of an event, as another process does after a kill', async () => {
    const { service, world } = await givenFollowed();
    const client = createClient({ url: service.url, token: world.asViewer.token });
    const { cursor: start } = await client.events.list.query({ after: 'latest' });
    const ids = await createTags(world, 3);
    const nextAfter = async (after: string) => {
      for await (const event of client.events.follow({ types: ['tag.created'], after })) return event;
      throw new Error('The stream ended.');
    };

    const first = await nextAfter(start);
    const second = await nextAfter(first.cursor);
    const listed = await client.events.list.query({ types: ['tag.created'], after: second.cursor });

    expect([first, second, ...listed.events].map(({ subject_id }) => subject_id)).toEqual(ids);
  });

  it('goes on at another node behind the last event when its own stops', async () => {
    const { service, world } = await givenFollowed();
    const other = await givenService();
    let url = service.url;
    const client = createClient({
      url: service.url,
      token: world.asViewer.token,
      fetch: (address, init) => fetch(String(address).replace(service.url, url), init),
    });
    const events = client.events.follow();
    const first = events.next();
    await expect.poll(() => followersOf(service)).toBe(1);
    const before = await createTag(world);
    expect((await first).value).toMatchObject({ subject_id: before });

    url = other.url;
    const next = events.next();
    const drained = service.app.drain(10_000);
    const missed = await query(
      await testDb(),
      sql<{ subject_id: number }>`insert into events (type, project_id, surface, subject_id, data)
        values ('tag.created', ${world.project.id}, 'rest', 4711, '{"version": 1}') returning subject_id`,
    );

    expect((await next).value).toMatchObject(missed[0]!);
    await drained;
    await events.return();
  });

  it('ends by its signal without an error, and throws a 401 and a 403', async () => {
    const { service, world } = await givenFollowed();
    const stop = new AbortController();
    const reading = createClient({ url: service.url, token: world.asViewer.token })
      .events.follow({}, { signal: stop.signal })
      .next();
    await expect.poll(() => followersOf(service)).toBe(1);
    stop.abort();
    expect(await reading).toEqual({ done: true, value: undefined });

    const failure = (token: string | undefined, input = {}) =>
      createClient({ url: service.url, token })
        .events.follow(input)
        .next()
        .catch((error: DeckhandError) => error);
    expect(await failure(undefined)).toMatchObject({ name: 'DeckhandError', status: 401, reason: 'not_signed_in' });
    expect(await failure(world.asViewer.token, { project_id: world.otherProject.id })).toMatchObject({ status: 403 });
  });

  it('throws a 401 when its session ends', async () => {
    const { service, world } = await givenFollowed();
    const token = await givenToken(world.users.viewer);
    const next = createClient({ url: service.url, token }).events.follow().next();
    await expect.poll(() => followersOf(service)).toBe(1);

    await createClient({ url: service.url, token }).account.signOut.mutate();

    await expect(next).rejects.toMatchObject({ status: 401 });
  });
});
