import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { query } from '../../server/database/query.ts';
import { makeUnsentResponses } from '../../server/limits/unsentResponses.ts';
import type { FairQueue } from '../../server/runtime/fairQueue.ts';
import { tooManyRequests } from '../../shared/errors.ts';
import { COUNTS_AS } from '../../shared/limits.ts';
import { type Answer, makeCaller, refusalOf, type TestCaller } from '../harness/caller.ts';
import { countStatements, givenService } from '../harness/service.ts';
import {
  givenKey,
  givenProject,
  givenServiceAccount,
  givenToken,
  givenUser,
  givenWorld,
  testDb,
} from '../harness/world.ts';

const LIST = '/services/operations/v1/operations/boards/list';
const AUTHENTICATE = '/v1/authenticate';

/** With a random key prefix: other test runs have users with the same ids. */
const redis = `${process.env.TEST_REDIS_URL ?? 'redis://127.0.0.1:6379'}?keyPrefix=deckhand-test-${randomUUID()}:`;
const hasRedis = await import('ioredis').then(async ({ Redis }) => {
  const client = new Redis(redis, { lazyConnect: true, retryStrategy: null });
  client.on('error', () => undefined);
  return client.connect().then(
    () => {
      client.disconnect();
      return true;
    },
    () => false,
  );
});

const givenCaller = async (limit: number, more: Record<string, string> = {}) => {
  const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: String(limit), ...more });
  const user = await givenUser({ project: await givenProject() });
  return { url, user, caller: makeCaller(url, await givenToken(user)) };
};

describe('the rate limit', () => {
  it('counts down, then 429 with Retry-After', async () => {
    const { caller } = await givenCaller(3);

    for (const remaining of ['2', '1', '0']) {
      const answer = await caller.post(LIST);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('x-ratelimit-limit')).toBe('3');
      expect(answer.headers.get('x-ratelimit-remaining')).toBe(remaining);
      expect(answer.headers.get('retry-after')).toBeNull();
    }
    const refused = await caller.post(LIST);

    expect(refused.status).toBe(429);
    expect(refused.body).toEqual({ error: true, message: 'Too many requests. Try again later.' });
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
  });

  it('is shared by all tokens of a user over REST and RPC, but not between users', async () => {
    const { url, user, caller } = await givenCaller(2);
    const second = makeCaller(url, await givenToken(user));
    const somebodyElse = makeCaller(url, await givenToken(await givenUser({ project: await givenProject() })));

    expect((await caller.post(LIST)).status).toBe(200);
    await second.rpc.boards.list.query();

    expect((await caller.post(LIST)).status).toBe(429);
    expect(await refusalOf(second.rpc.boards.list.query())).toEqual({
      status: 429,
      message: 'Too many requests. Try again later.',
    });
    expect((await somebodyElse.post(LIST)).status).toBe(200);
  });

  it('is checked before the token, the path and the body', async () => {
    const { url } = await givenCaller(1);
    const asNobody = makeCaller(url);

    expect((await asNobody.post(LIST)).status).toBe(401);
    for (const path of [LIST, '/nothing', AUTHENTICATE]) expect((await asNobody.post(path, '{')).status).toBe(429);
  });

  it('counts each call of a batch: 429 for those above it, 200 for the others', async () => {
    const { caller } = await givenCaller(3);

    const calls = await Promise.allSettled(Array.from({ length: 5 }, () => caller.rpc.boards.list.query()));

    expect(calls.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected']);
    const [refused] = calls.slice(3) as PromiseRejectedResult[];
    expect(refused!.reason.data).toMatchObject({
      code: 'TOO_MANY_REQUESTS',
      httpStatus: 429,
      retryAfterSeconds: expect.any(Number),
    });
    const { headers } = await caller.post(LIST);
    expect(headers.get('x-ratelimit-remaining')).toBe('0');
  });

  it('207 with Retry-After if part of a batch is refused', async () => {
    const { url, caller } = await givenCaller(1);

    const response = await fetch(`${url}/trpc/boards.list,boards.list?batch=1`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${caller.token}` },
      body: '{}',
    });

    expect(response.status).toBe(207);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(response.headers.get('x-ratelimit-remaining')).toBe('0');
  });

  describe('for many rows', () => {
    const MANY = '/services/operations/v1/operations/cards/create-many';
    const titled = (count: number) => Array.from({ length: count }, () => ({ title: 'x' }));
    const countCards = async (userId: number) =>
      (await query(await testDb(), sql`select from cards where created_by = ${userId}`)).length;

    it.each([
      [0, 1],
      [1, 1],
      [20, 1],
      [21, 2],
      [100, 5],
    ])('counts %i cards as calls: %i', async (count, calls) => {
      const { caller } = await givenCaller(20);

      const answer = await caller.post(MANY, { cards: titled(count) });

      expect(answer.status).toBe(200);
      expect(answer.headers.get('x-ratelimit-remaining')).toBe(String(20 - calls));
      expect((await caller.post(LIST)).headers.get('x-ratelimit-remaining')).toBe(String(20 - calls - 1));
    });

    it('429 with Retry-After before a card is created', async () => {
      const { caller, user } = await givenCaller(4);

      const accepted = await caller.post(MANY, { cards: titled(60) });
      const again = await caller.post(MANY, { cards: titled(21) });

      expect(accepted.status).toBe(200);
      expect(again).toMatchObject({ status: 429, body: { message: 'Too many requests. Try again later.' } });
      expect(Number(again.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(await countCards(user.id)).toBe(60);
    });

    it('gives back what a refused call counted beyond one', async () => {
      const { caller, user } = await givenCaller(5);
      await caller.post(LIST);

      const refused = await caller.rpc.cards.createMany.mutate({ cards: titled(100) }).catch((error) => error);

      expect(refused).toMatchObject({ status: 429, reason: 'over_rate_limit' });
      expect(await countCards(user.id)).toBe(0);
      expect((await caller.post(MANY, { cards: titled(40) })).headers.get('x-ratelimit-remaining')).toBe('1');
    });

    it('allows a call alone in its minute, however low the limit is', async () => {
      const { caller, user } = await givenCaller(2);

      const answer = await caller.post(MANY, { cards: titled(100) });

      expect(answer.status).toBe(200);
      expect(answer.headers.get('x-ratelimit-remaining')).toBe('0');
      expect(await countCards(user.id)).toBe(100);
    });

    it('is in the words of the document and of docs/rest.md', () => {
      const { description } = procedures.find(({ name }) => name === 'cards.createMany')!;

      expect(description).toContain(COUNTS_AS);
      expect(readFileSync('docs/rest.md', 'utf8').replaceAll('\n', ' ')).toContain(COUNTS_AS);
    });
  });

  it('counts a revoked token for the address that sent it, not for the user', async () => {
    const { url, user, caller } = await givenCaller(2);
    const stolen = caller;
    await query(await testDb(), sql`update sessions set revoked_at = now() where user_id = ${user.id}`);

    expect((await stolen.post(LIST)).status).toBe(401);
    expect((await stolen.post(LIST)).status).toBe(401);
    expect((await stolen.post(LIST)).status).toBe(429);

    const fresh = await makeCaller(url, await givenToken(user)).post(LIST);
    expect(fresh.status).toBe(200);
    expect(fresh.headers.get('x-ratelimit-remaining')).toBe('1');
  });

  it('is not used up for a user by parallel batches with their revoked token', async () => {
    const { url, user, caller } = await givenCaller(100);
    await query(await testDb(), sql`update sessions set revoked_at = now() where user_id = ${user.id}`);
    const batch = () =>
      fetch(`${url}/trpc/${Array(50).fill('boards.list').join()}?batch=1`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${caller.token}` },
        body: '{}',
      });

    const answers = await Promise.all(Array.from({ length: 8 }, batch));

    expect(answers.map(({ status }) => status).toSorted()).toEqual([401, 401, ...Array(6).fill(429)]);
    const fresh = await makeCaller(url, await givenToken(user)).post(LIST);
    expect(fresh.headers.get('x-ratelimit-remaining')).toBe('99');
  });

  it('uses the address that the trusted proxies added, not what the caller sent in X-Forwarded-For', async () => {
    const behindTwo = makeCaller((await givenService({ RATE_LIMIT_PER_MINUTE: '1', TRUST_PROXY: '2' })).url);
    const from = (addresses: string) => behindTwo.post(LIST, undefined, { 'x-forwarded-for': addresses });

    expect((await from('6.6.6.6, 10.0.0.1, 192.168.0.1')).status).toBe(401);
    expect((await from('7.7.7.7, 10.0.0.1, 192.168.0.1')).status).toBe(429);
    expect((await from('10.0.0.2, 192.168.0.1')).status).toBe(401);
  });

  it('treats all spellings of an address as one, and an invalid address as the proxy', async () => {
    const behind = makeCaller((await givenService({ RATE_LIMIT_PER_MINUTE: '1', TRUST_PROXY: '1' })).url);
    const from = async (address: string) => (await behind.post(LIST, undefined, { 'x-forwarded-for': address })).status;

    expect(await from('2001:db8:0:1::1')).toBe(401);
    for (const same of ['2001:DB8:0:1:0:0:0:1', '2001:0db8:0000:0001::ffff', '[2001:db8:0:1::2]:443'])
      expect(await from(same)).toBe(429);
    expect(await from('10.0.0.1:4711')).toBe(401);
    for (const same of ['10.0.0.1', '::ffff:10.0.0.1', '::FFFF:a00:1']) expect(await from(same)).toBe(429);
    expect(await from('nonsense')).toBe(401);
    expect(await from('unknown')).toBe(429);
  });

  it('uses X-Forwarded-For only from a trusted proxy', async () => {
    const from = (address: string) => ({ 'x-forwarded-for': address });
    const direct = makeCaller((await givenService({ RATE_LIMIT_PER_MINUTE: '1' })).url);
    const behindProxy = makeCaller((await givenService({ RATE_LIMIT_PER_MINUTE: '1', TRUST_PROXY: '127.0.0.1' })).url);

    expect((await direct.post(LIST, undefined, from('10.0.0.1'))).status).toBe(401);
    expect((await direct.post(LIST, undefined, from('10.0.0.2'))).status).toBe(429);
    expect((await behindProxy.post(LIST, undefined, from('10.0.0.1'))).status).toBe(401);
    expect((await behindProxy.post(LIST, undefined, from('10.0.0.2'))).status).toBe(401);
    expect((await behindProxy.post(LIST, undefined, from('10.0.0.1'))).status).toBe(429);
  });

  it('is counted in memory while Redis is unreachable', async () => {
    const { caller } = await givenCaller(1, { REDIS_URL: 'redis://127.0.0.1:1' });

    expect((await caller.post(LIST)).status).toBe(200);
    expect((await caller.post(LIST)).status).toBe(429);
  });
});

describe('a call that is refused as busy', () => {
  const busy = () => tooManyRequests('The service is busy. Try again shortly.', 1, 'service_busy');
  const CALLS = (count: number) => `boards.list${',boards.list'.repeat(count - 1)}?batch=1`;

  /** A service that refuses calls in the queue as long as `isBusy` says so. */
  const givenBusy = async (limit: number, isBusy: () => boolean, more: Record<string, string> = {}) => {
    const settings = { RATE_LIMIT_PER_MINUTE: String(limit), ...more };
    const run: FairQueue['run'] = async (_, work) => (isBusy() ? Promise.reject(busy()) : work());
    const { url } = await givenService(settings, { queue: { run, load: () => ({ running: 0, waiting: 0 }) } });
    const caller = makeCaller(url, await givenToken(await givenUser({ project: await givenProject() })));
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${caller.token}` };
    const batch = (count: number) => fetch(`${url}/trpc/${CALLS(count)}`, { method: 'POST', headers, body: '{}' });
    return { caller, batch };
  };
  const remainingOf = ({ headers }: { headers: Headers }) => headers.get('x-ratelimit-remaining');

  const counting = [
    ['in memory', {}, true],
    ['in memory while Redis is unreachable', { REDIS_URL: 'redis://127.0.0.1:1' }, true],
    ['in Redis (skipped if unreachable)', { REDIS_URL: redis }, hasRedis],
  ] as const;

  describe.each(counting)('%s', (_, settings, isPossible) => {
    it.runIf(isPossible)('does not count, over REST and RPC, and the headers say so', async () => {
      let isBusy = true;
      const { caller, batch } = await givenBusy(5, () => isBusy, settings);

      for (const refused of [await caller.post(LIST), await caller.post(LIST), await batch(3), await batch(5)]) {
        expect(refused.status).toBe(429);
        expect(remainingOf(refused)).toBe('5');
        expect(refused.headers.get('retry-after')).toBe('1');
      }
      isBusy = false;
      const served = await batch(5);

      expect(served.status).toBe(200);
      expect(remainingOf(served)).toBe('0');
      expect((await caller.post(LIST)).status).toBe(429);
    });

    it.runIf(isPossible)(
      'in a batch leaves only the served calls counted, also if others are above the limit',
      async () => {
        let calls = 0;
        const { caller, batch } = await givenBusy(5, () => [1, 3, 5].includes(calls++), settings);

        const mixed = await batch(4);
        const withOthersAbove = await batch(8);

        expect([mixed.status, remainingOf(mixed)]).toEqual([207, '3']);
        // Three calls are within the limit, of which the second is busy.
        expect([withOthersAbove.status, remainingOf(withOthersAbove)]).toEqual([207, '1']);
        expect((await caller.post(LIST)).status).toBe(200);
        expect((await caller.post(LIST)).status).toBe(429);
      },
    );
  });

  it('does not count while its caller is being found', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1' }, { findCaller: () => Promise.reject(busy()) });
    const caller = makeCaller(url, await givenToken(await givenUser()));

    for (const refused of [await caller.post(LIST), await caller.post(LIST)]) {
      expect(refused.status).toBe(429);
      expect(remainingOf(refused)).toBe('1');
    }
    expect((await makeCaller(url).post(LIST)).status).toBe(401);
  });

  it('does not count in a batch while its caller is being found', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '5' }, { findCaller: () => Promise.reject(busy()) });
    const headers = { authorization: `Bearer ${await givenToken(await givenUser())}` };

    const refused = await fetch(`${url}/trpc/${CALLS(3)}`, { headers });

    expect([refused.status, remainingOf(refused)]).toEqual([429, '5']);
  });

  it('counts if the caller causes it alone: with unread answers, or too many calls at once', async () => {
    const mustBeFew = () => {
      throw tooManyRequests('Read your answers first.', 1, 'answers_unread');
    };
    const unsentResponses = { ...makeUnsentResponses(), mustBeFew };
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '2' }, { unsentResponses });
    const caller = makeCaller(url, await givenToken(await givenUser({ project: await givenProject() })));

    const batch = await Promise.all([1, 2].map(() => refusalOf(caller.rpc.boards.list.query())));

    expect(batch).toMatchObject([{ message: 'Read your answers first.' }, { message: 'Read your answers first.' }]);
    expect(await refusalOf(caller.rpc.boards.list.query())).toMatchObject({
      message: 'Too many requests. Try again later.',
    });

    const run = () => Promise.reject(tooManyRequests('You have too many calls.', 1, 'too_many_at_once'));
    const queue = { run, load: () => ({ running: 0, waiting: 0 }) };
    const { url: another } = await givenService({ RATE_LIMIT_PER_MINUTE: '2' }, { queue });
    const refused = await makeCaller(another, caller.token!).post(LIST);

    expect([refused.status, remainingOf(refused)]).toEqual([429, '1']);
  });

  it('still counts if it failed for another reason', async () => {
    const { caller } = await givenCaller(3);

    expect(remainingOf(await caller.post('/services/operations/v1/operations/boards/get', {}))).toBe('2');
    expect(remainingOf(await caller.post('/nothing'))).toBe('1');
  });
});

describe('a rate limit of their own', () => {
  const UPDATE = '/services/platforms/v1/users/update';
  /** A service account with this limit, on nodes with a default of 3. */
  const givenLimited = async (rate_limit_per_minute: number | null, more: Record<string, string> = {}) => {
    const settings = { RATE_LIMIT_PER_MINUTE: '3', ...more };
    const nodes = [await givenService(settings), await givenService(settings)];
    const user = await givenServiceAccount({ project: await givenProject(), rate_limit_per_minute });
    const { secret } = await givenKey(user, { last_used_at: new Date('2099-01-01') });
    const [caller, elsewhere] = nodes.map(({ url }) => makeCaller(url, secret)) as [TestCaller, TestCaller];
    return { user, secret, url: nodes[0]!.url, caller, elsewhere };
  };
  const limitOf = ({ status, headers }: Answer) =>
    `${status} ${headers.get('x-ratelimit-remaining')} of ${headers.get('x-ratelimit-limit')}`;

  it.each([1, 5])('of %i replaces the default, for all keys of the user, also in the headers', async (own) => {
    const { user, url, caller } = await givenLimited(own);
    const { secret } = await givenKey(user);
    const callers = [caller, makeCaller(url, secret)];

    for (let call = 1; call <= own; call++)
      expect(limitOf(await callers[call % 2]!.post(LIST))).toBe(`200 ${own - call} of ${own}`);

    for (const each of callers) expect(limitOf(await each.post(LIST))).toBe(`429 0 of ${own}`);
    expect(limitOf(await makeCaller(url).post(LIST))).toBe('401 2 of 3');
  });

  it('is known without a further statement, and without any once it is used up', async () => {
    const { caller } = await givenLimited(2);

    for (const statements of [2, 2, 0, 0]) expect(await countStatements(() => caller.post(LIST))).toBe(statements);
  });

  it('is exact for calls at once and for batches', async () => {
    const [single, batched] = [await givenLimited(7), await givenLimited(7)];

    const answers = await Promise.all(Array.from({ length: 20 }, () => single.caller.post(LIST)));
    const calls = await Promise.allSettled(Array.from({ length: 9 }, () => batched.caller.rpc.boards.list.query()));

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(7);
    expect(calls.filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
    expect(limitOf(await batched.caller.post(LIST))).toBe('429 0 of 7');
  });

  it.skipIf(!hasRedis)('is shared by all nodes in Redis (skipped if unreachable)', async () => {
    const { caller, elsewhere } = await givenLimited(5, { REDIS_URL: redis });

    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, call) => (call % 2 ? caller : elsewhere).post(LIST)),
    );

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    for (const each of [caller, elsewhere]) expect(limitOf(await each.post(LIST))).toBe('429 0 of 5');
  });

  it('is set and cleared by superadmins, on both surfaces, with an event', async () => {
    const { user, caller } = await givenLimited(null);
    const { asSuperadmin } = await givenWorld();
    const set = async (rate_limit_per_minute: number | null) =>
      (await asSuperadmin.rpc.users.update.mutate({ id: user.id, rate_limit_per_minute })).user;

    expect(limitOf(await caller.post(LIST))).toBe('200 2 of 3');
    const answer = await asSuperadmin.post(UPDATE, { id: user.id, rate_limit_per_minute: 100 });
    expect(answer.body.data.user.rate_limit_per_minute).toBe(100);
    expect(limitOf(await caller.post(LIST))).toBe('200 98 of 100');
    await set(4);
    expect(limitOf(await caller.post(LIST))).toBe('200 1 of 4');
    expect((await set(null)).rate_limit_per_minute).toBeNull();
    expect(limitOf(await caller.post(LIST))).toBe('429 0 of 3');
    for (const table of ['events', 'audit_entries'])
      expect(
        await query(
          await testDb(),
          sql`select data from ${sql.table(table)} where type = 'user.updated' and subject_id = ${user.id}`,
        ),
      ).toEqual(Array(3).fill({ data: { fields: ['rate_limit_per_minute'] } }));
  });

  it('403 for owners and the user itself, 422 for zero, a fraction and too many', async () => {
    const { asOwner, asSuperadmin, users } = await givenWorld();
    const update = { id: users.owner.id, rate_limit_per_minute: 100_000 };

    expect((await asOwner.post(UPDATE, update)).status).toBe(403);
    for (const rate_limit_per_minute of [0, -1, 1.5, 2 ** 31])
      expect((await asSuperadmin.post(UPDATE, { ...update, rate_limit_per_minute })).status).toBe(422);
    const { user } = await asSuperadmin.rpc.users.create.mutate({
      name: 'x',
      kind: 'service',
      rate_limit_per_minute: 7,
    });
    expect(user.rate_limit_per_minute).toBe(7);
  });
});

describe('guessing', () => {
  const BLOCKED = { status: 429, body: { message: 'Too many failed attempts. Try again later.' } };
  const givenGuess = async (settings: Record<string, string>, email: string) => {
    const { url } = await givenService(settings);
    return () => makeCaller(url).post(AUTHENTICATE, { email, password: 'wrong' });
  };

  it('is counted in memory while Redis is unreachable', async () => {
    const guess = await givenGuess({ REDIS_URL: 'redis://127.0.0.1:1' }, 'nobody@example.test');

    for (let failed = 0; failed < 10; failed++) expect((await guess()).status).toBe(401);

    expect(await guess()).toMatchObject(BLOCKED);
  });

  it.skipIf(!hasRedis)('is counted across all nodes in Redis (skipped if unreachable)', async () => {
    const { email } = await givenUser();
    const [here, there] = [
      await givenGuess({ REDIS_URL: redis }, email),
      await givenGuess({ REDIS_URL: redis }, email),
    ];

    for (let failed = 0; failed < 5; failed++) {
      expect((await here()).status).toBe(401);
      expect((await there()).status).toBe(401);
    }

    expect(await here()).toMatchObject(BLOCKED);
    expect(await there()).toMatchObject(BLOCKED);
  });
});

describe.skipIf(!hasRedis)('the rate limit in Redis (skipped if unreachable)', () => {
  it('is shared by all nodes', async () => {
    const settings = { RATE_LIMIT_PER_MINUTE: '3', REDIS_URL: redis };
    const [first, second] = [await givenService(settings), await givenService(settings)];
    const { asMember } = await givenWorld(first);
    const elsewhere = makeCaller(second.url, asMember.token);

    const remaining = [];
    for (const caller of [asMember, elsewhere, asMember])
      remaining.push((await caller.post(LIST)).headers.get('x-ratelimit-remaining'));

    expect(remaining).toEqual(['2', '1', '0']);
    expect((await asMember.post(LIST)).status).toBe(429);
    expect((await elsewhere.post(LIST)).status).toBe(429);
  });
});
