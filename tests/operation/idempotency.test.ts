import { createHash, randomUUID } from 'node:crypto';
import { TRPCError } from '@trpc/server';
import { sql } from 'kysely';
import superjson from 'superjson';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { findProcedure } from '../../server/api/procedures.ts';
import { runOnce } from '../../server/call/once.ts';
import { query, transact } from '../../server/database/query.ts';
import type { SignedInContext } from '../../server/domain/access/context.ts';
import {
  claimKey,
  finishKey,
  RENEW_MILLISECONDS,
  releaseKey,
  renewHold,
} from '../../server/domain/access/idempotencyKey.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { countStatements, databaseUrl, givenService, TEST_SECRET, testService } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenMasterBoard,
  givenTrial,
  givenWorld,
  PASSWORD,
  testDb,
  type World,
} from '../harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';
const DISMISS = '/services/operations/v1/operations/tour/cards/dismiss-all';
const SYNC = '/services/operations/v1/admin/master-boards/sync';

let world: World;
beforeAll(async () => {
  world = await givenWorld();
});

const keyed = (key: string = randomUUID()) => ({ 'Idempotency-Key': key });

const replayed = ({ headers }: { headers: Headers }) => headers.get('idempotent-replayed');

async function countCards(title: string): Promise<number> {
  const [row] = await query(
    await testDb(),
    sql<{ count: number }>`select count(*)::int as count from cards where title = ${title}`,
  );
  return row!.count;
}

async function storedKey(key: string): Promise<Record<string, unknown> | undefined> {
  const [row] = await query(
    await testDb(),
    sql<Record<string, unknown>>`select * from idempotency_keys where key = ${key}`,
  );
  return row;
}

/** Sends RPC calls, with the header as it is. */
async function sendRpc({ token }: TestCaller, path: string, body: unknown, header?: string) {
  const { url } = await testService();
  const response = await fetch(`${url}/trpc/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
      ...(header !== undefined && { 'idempotency-key': header }),
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as any };
}

const card = (title: string) => ({ json: { title } });

describe('a repeat with the same Idempotency-Key', () => {
  it('gets the first answer, and changes nothing', async () => {
    const title = randomUUID();
    const headers = keyed();

    const first = await world.asMember.post(CREATE, { title, due_date: '2030-01-31' }, headers);
    const second = await world.asMember.post(CREATE, { title, due_date: '2030-01-31' }, headers);

    expect(first.status).toBe(201);
    expect(replayed(first)).toBeNull();
    expect(second).toMatchObject({ status: 201, body: first.body });
    expect(JSON.stringify(second.body)).toBe(JSON.stringify(first.body));
    expect(replayed(second)).toBe('true');
    expect(await countCards(title)).toBe(1);
  });

  it('gets the same bytes over RPC, with the annotations of dates', async () => {
    const due = { title: randomUUID(), due_date: '2030-01-31' };
    const card_id = await givenCard(world.project);
    const calls = [
      ['cards.create', due],
      ['cards.create', { title: randomUUID() }],
      ['comments.create', { card_id, comment: 'A first draft is ready.' }],
    ] as const;

    for (const [path, json] of calls) {
      const key = randomUUID();
      const first = await sendRpc(world.asMember, path, { json }, key);
      const second = await sendRpc(world.asMember, path, { json }, key);

      expect(JSON.stringify(second.body)).toBe(JSON.stringify(first.body));
      expect(replayed(second)).toBe('true');
      const [created] = Object.values(superjson.deserialize(first.body.result.data) as Record<string, object>);
      expect(created).toMatchObject({ created_at: expect.any(Date), updated_at: expect.any(Date), deleted_at: null });
      if (path === 'cards.create') {
        const due_date = 'due_date' in json ? new Date(json.due_date) : null;
        expect(created).toMatchObject({ due_date, snoozed_until: null });
      }
    }
  });

  it('gets it over the other surface, too', async () => {
    const title = randomUUID();
    const key = randomUUID();

    const first = await world.asMember.rpc.cards.create.mutate({ title }, { idempotencyKey: key });
    const second = await sendRpc(world.asMember, 'cards.create', card(title), key);
    const third = await world.asMember.post(CREATE, { title }, keyed(key));

    expect(new Date(second.body.result.data.json.card.created_at)).toEqual(first.card.created_at);
    expect(third.body.data.card.id).toBe(first.card.id);
    expect([replayed(second), replayed(third)]).toEqual(['true', 'true']);
    expect(await countCards(title)).toBe(1);
  });

  it('is compared by what the input means: order, spaces and unknown fields do not matter', async () => {
    const title = randomUUID();
    const headers = keyed();

    await world.asMember.post(CREATE, { title, priority: 'high' }, headers);
    const second = await world.asMember.post(CREATE, { priority: 'high', unknown: 1, title: ` ${title} ` }, headers);

    expect(replayed(second)).toBe('true');
  });

  it('is another call of another user, of another procedure, and after 24 hours', async () => {
    const title = randomUUID();
    const key = randomUUID();

    const first = await world.asMember.post(CREATE, { title }, keyed(key));
    const ofOwner = await world.asOwner.post(CREATE, { title }, keyed(key));
    const deleted = await world.asMember.post(
      CREATE.replace('create', 'delete'),
      { id: first.body.data.card.id },
      keyed(key),
    );
    expect([ofOwner, deleted].map(replayed)).toEqual([null, null]);
    await query(
      await testDb(),
      sql`update idempotency_keys set created_at = now() - interval '24 hours 1 second' where key = ${key}`,
    );
    const later = await world.asMember.post(CREATE, { title: `${title} later` }, keyed(key));

    expect(later.status).toBe(201);
    expect(replayed(later)).toBeNull();
    expect(replayed(await world.asMember.post(CREATE, { title: `${title} later` }, keyed(key)))).toBe('true');
  });

  it('of which 40 come at once: one effect, 40 equal answers', async () => {
    const title = randomUUID();
    const headers = keyed();

    const answers = await Promise.all(
      Array.from({ length: 40 }, () => world.asMember.post(CREATE, { title }, headers)),
    );

    expect(new Set(answers.map(({ status, body }) => JSON.stringify({ status, body }))).size).toBe(1);
    expect(answers[0]!.status).toBe(201);
    expect(answers.filter((answer) => replayed(answer) === 'true')).toHaveLength(39);
    expect(await countCards(title)).toBe(1);
  });
});

describe('a call that failed', () => {
  it.each([
    ['422 before it reached the database', { title: '' }],
    ['422 from the database', { title: 'x', group_id: 2_000_000_000 }],
  ])('%s frees its key', async (_, input) => {
    const title = randomUUID();
    const key = randomUUID();

    const failed = await world.asMember.post(CREATE, input, keyed(key));
    expect(failed.status).toBe(422);
    expect(await storedKey(key)).toBeUndefined();
    const second = await world.asMember.post(CREATE, { title }, keyed(key));

    expect(second.status).toBe(201);
    expect(replayed(second)).toBeNull();
  });

  it('401 and 403 store nothing', async () => {
    const key = randomUUID();

    expect((await world.asNobody.post(CREATE, { title: 'x' }, keyed(key))).status).toBe(401);
    expect((await world.asViewer.post(CREATE, { title: 'x' }, keyed(key))).status).toBe(403);

    expect(await storedKey(key)).toBeUndefined();
  });

  it('rolls back everything that it wrote, of several statements', async () => {
    const key = randomUUID();
    const board = await givenBoard(world.project);
    const reorder = '/services/operations/v1/operations/boards/reorder';
    const boards = [
      { id: board, position: 77 },
      { id: 2_000_000_000, position: 1 },
    ];

    const failed = await world.asMember.post(reorder, { boards }, keyed(key));

    expect(failed.status).toBe(404);
    const [row] = await query(
      await testDb(),
      sql<{ position: number }>`select position from boards where id = ${board}`,
    );
    expect(row!.position).not.toBe(77);
    expect(await storedKey(key)).toBeUndefined();
  });
});

describe('work in one transaction', () => {
  const deadlock = (): never => {
    throw new TRPCError({
      code: 'INTERNAL_SERVER_ERROR',
      cause: Object.assign(new Error('deadlock detected'), { code: '40P01' }),
    });
  };
  const run = async (results: (() => unknown)[]) => {
    const work = vi.fn(async () => results.shift()!());
    const key = randomUUID();
    const services = { secretBox: { hashes: () => ['x'] } };
    const context = { db: await testDb(), caller: world.users.member, services } as unknown as SignedInContext;
    const call = { procedure: findProcedure('cards.create')!, key, input: {}, onReplay: () => undefined };
    return { work, key, result: runOnce(context, call, work) };
  };

  it('is tried again after a deadlock', async () => {
    const { work, key, result } = await run([deadlock, () => ({ card: 1 })]);

    expect(await result).toEqual({ card: 1 });
    expect(work).toHaveBeenCalledTimes(2);
    expect(await storedKey(key)).toMatchObject({ answer: '{"json":{"card":1}}' });
  });

  it('fails after three deadlocks, and frees its key', async () => {
    const { work, key, result } = await run([deadlock, deadlock, deadlock]);

    await expect(result).rejects.toMatchObject({ cause: { code: '40P01' } });
    expect(work).toHaveBeenCalledTimes(3);
    expect(await storedKey(key)).toBeUndefined();
  });

  it('stores no answer above 1 MiB', async () => {
    const { key, result } = await run([() => 'x'.repeat(1024 * 1024)]);
    await result;

    expect(await storedKey(key)).toMatchObject({ answer: null, finished_at: expect.any(Date) });
  });
});

describe('a key that was used for something else', () => {
  it('422 for another input, on both surfaces, and nothing changes', async () => {
    const [title, other] = [randomUUID(), randomUUID()];
    const key = randomUUID();
    await world.asMember.post(CREATE, { title }, keyed(key));

    const rest = await world.asMember.post(CREATE, { title: other }, keyed(key));
    const rpc = await sendRpc(world.asMember, 'cards.create', card(other), key);

    const text = 'Idempotency-Key was used for another input or project: send a new one.';
    expect(rest).toMatchObject({ status: 422, body: { message: text, errors: { 'Idempotency-Key': [text] } } });
    expect(rest.headers.get('x-error-reason')).toBe('idempotency_key_reused');
    expect(rpc).toMatchObject({
      status: 422,
      body: { error: { json: { message: text, data: { reason: 'idempotency_key_reused' } } } },
    });
    expect(await countCards(other)).toBe(0);
  });

  it('422 for the same input in another project', async () => {
    const title = randomUUID();
    const key = randomUUID();
    await world.asMember.post(CREATE, { title }, keyed(key));

    const chosen = await world.asMember.in(world.project.id).post(CREATE, { title }, keyed(key));

    expect(chosen.status).toBe(422);
    expect(await countCards(title)).toBe(1);
  });

  it('400 where the operation documents no 422', async () => {
    const key = randomUUID();
    await world.asMember.post(DISMISS, undefined, keyed(key));

    const answer = await world.asMember.in(world.project.id).post(DISMISS, undefined, keyed(key));

    expect(answer).toMatchObject({ status: 400, body: { error: true, data: [] } });
    expect(answer.headers.get('x-error-reason')).toBe('idempotency_key_reused');
  });
});

describe('an invalid Idempotency-Key', () => {
  it.each([
    ['empty', ''],
    ['too long', 'k'.repeat(256)],
    ['not ASCII', 'é'],
    ['with a tab', 'a\tb'],
  ])('400 if it is %s', async (_, key) => {
    const answer = await world.asMember.post(CREATE, { title: 'x' }, keyed(key));

    expect(answer).toMatchObject({ status: 400, body: { error: true, data: [] } });
    expect(answer.headers.get('x-error-reason')).toBe('idempotency_key_invalid');
  });

  it('is not looked at before the access, nor on queries, nor at sign-in', async () => {
    const list = '/services/operations/v1/operations/boards/list';
    const credentials = { email: world.users.member.email, password: PASSWORD };

    expect((await world.asNobody.post(CREATE, { title: 'x' }, keyed(''))).status).toBe(401);
    expect((await world.asMember.post(list, {}, keyed(''))).status).toBe(200);
    expect((await world.asNobody.post('/v1/authenticate', credentials, keyed(''))).status).toBe(200);
  });

  it.each(['a', ' !"#$%&()*+-./:;<=>?@[]^_`{|}~ and spaces', 'k'.repeat(255), 'one, two'])('is not %j', async (key) => {
    const title = randomUUID();

    const [first, second] = [
      await world.asMember.post(CREATE, { title }, keyed(`${key}`)),
      await world.asMember.post(CREATE, { title }, keyed(`${key}`)),
    ];

    expect([first.status, second.status]).toEqual([201, 201]);
    expect(replayed(second)).toBe('true');
    await query(await testDb(), sql`delete from idempotency_keys where key = ${key.trim()}`);
  });
});

describe('a batch', () => {
  const batch = (titles: string[], header?: string) =>
    sendRpc(
      world.asMember,
      `${titles.map(() => 'cards.create').join()}?batch=1`,
      Object.fromEntries(titles.map((title, at) => [at, card(title)])),
      header,
    );

  it('has a key for each call, and tells which calls were repeats', async () => {
    const titles = [randomUUID(), randomUUID(), randomUUID()];
    const [a, c] = [randomUUID(), randomUUID()];

    const first = await batch(titles, `${a},,${c}`);
    const some = await batch(titles, `${a}, , ${c}`);
    const all = await batch([titles[0]!, titles[2]!], `${a},${c}`);

    expect([first, some, all].map(({ status }) => status)).toEqual([200, 200, 200]);
    expect([first, some, all].map(replayed)).toEqual([null, '0,2', 'true']);
    expect(some.body[0]).toEqual(first.body[0]);
    expect(await Promise.all(titles.map(countCards))).toEqual([1, 2, 1]);
  });

  it('of two calls with the same key executes one', async () => {
    const title = randomUUID();
    const key = randomUUID();

    const answer = await batch([title, title], `${key},${key}`);

    expect(answer.body[0]).toEqual(answer.body[1]);
    expect(await countCards(title)).toBe(1);
  });

  it.each(['a', 'a,b,c'])('400 if the number of keys differs: %s for two calls', async (header) => {
    const title = randomUUID();

    const answer = await batch([title, title], header);

    expect(answer.status).toBe(400);
    expect(answer.body[0].error.json).toMatchObject({
      message: 'Idempotency-Key must have 2 keys, one for each call of the batch.',
      data: { reason: 'idempotency_key_invalid' },
    });
    expect(await countCards(title)).toBe(0);
  });

  it('of queries ignores the header', async () => {
    const answer = await sendRpc(
      world.asMember,
      'boards.list,tags.list?batch=1',
      { 0: { json: {} }, 1: { json: {} } },
      'a',
    );

    expect(answer.status).toBe(200);
  });
});

describe('work in several steps', () => {
  /** A claim of another call, with another input. */
  async function givenClaim(key: string, heldSeconds = 30) {
    const { id } = world.users.superadmin;
    await query(
      await testDb(),
      sql`insert into idempotency_keys (user_id, procedure, key, input_hash, holder, held_until)
        values (${id}, 'masterBoards.sync', ${key}, 'x', gen_random_uuid(), now() + make_interval(secs => ${heldSeconds}))`,
    );
  }

  it('of 5 repeats at once is done once', async () => {
    const { board } = await givenMasterBoard();
    const headers = keyed();

    const answers = await Promise.all(
      Array.from({ length: 5 }, () => world.asSuperadmin.post(SYNC, { board_id: board }, headers)),
    );

    expect(new Set(answers.map(({ status, body }) => JSON.stringify({ status, body }))).size).toBe(1);
    expect(answers[0]!.status).toBe(200);
    const runs = await query(await testDb(), sql`select id from template_runs where board_id = ${board}`);
    expect(runs).toHaveLength(1);
  });

  it('422 at once while other work holds the key', async () => {
    const { board } = await givenMasterBoard();
    const key = randomUUID();
    await givenClaim(key);

    expect((await world.asSuperadmin.post(SYNC, { board_id: board }, keyed(key))).status).toBe(422);
  });

  it('422 also after the process of other work has ended, which may have done something', async () => {
    const { board } = await givenMasterBoard();
    const key = randomUUID();
    await givenClaim(key, -1);

    expect((await world.asSuperadmin.post(SYNC, { board_id: board }, keyed(key))).status).toBe(422);
  });

  it('keeps its key for as long as it runs', async () => {
    const key = randomUUID();
    const [begun, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const services = { secretBox: { hashes: () => ['x'] } };
    const context = { db: await testDb(), caller: world.users.superadmin, services } as unknown as SignedInContext;
    const call = { procedure: findProcedure('masterBoards.sync')!, key, input: {}, onReplay: () => undefined };
    const timers = vi.spyOn(globalThis, 'setInterval');

    const result = runOnce(context, call, async () => {
      begun.resolve();
      await done.promise;
      return {};
    });
    await begun.promise;
    const [renew] = timers.mock.calls.find(([, milliseconds]) => milliseconds === RENEW_MILLISECONDS)!;
    timers.mockRestore();
    await query(await testDb(), sql`update idempotency_keys set held_until = now() where key = ${key}`);
    renew();

    await expect.poll(async () => Number((await storedKey(key))!.held_until) > Date.now()).toBe(true);
    done.resolve();
    expect(await result).toEqual({});
  });

  it('that is late leaves the key to the call that took it over', async () => {
    const [db, key] = [await testDb(), randomUUID()];
    const by = { user_id: world.users.superadmin.id, procedure: 'masterBoards.sync', key, hashes: ['x'] };
    const [late, next] = [
      { ...by, holder: randomUUID() },
      { ...by, holder: randomUUID() },
    ];
    await claimKey(db, late);
    await query(db, sql`update idempotency_keys set held_until = now() - interval '1 second' where key = ${key}`);
    expect(await claimKey(db, next)).toBeUndefined();
    const taken = await storedKey(key);

    await renewHold(db, late);
    await finishKey(db, late, '"late"');
    await releaseKey(db, late);
    expect(await storedKey(key)).toEqual(taken);

    await finishKey(db, next, '"next"');
    expect(await storedKey(key)).toMatchObject({ answer: '"next"', holder: next.holder });
  });

  it('frees its key after a failure', async () => {
    const key = randomUUID();

    expect((await world.asSuperadmin.post(SYNC, { board_id: 2_000_000_000 }, keyed(key))).status).toBe(404);

    expect(await storedKey(key)).toBeUndefined();
  });

  it('opens one checkout', async () => {
    const { product } = await givenTrial(world.project);
    const input = { product, plan: 'pro', period: 'month' };
    const headers = keyed();

    const upgrade = () => world.asOwner.post('/services/platforms/v1/subscriptions/upgrade-trial', input, headers);
    const [first, second] = [await upgrade(), await upgrade()];

    expect(first.status).toBe(200);
    expect(second.body).toEqual(first.body);
    expect(replayed(second)).toBe('true');
  });
});

/** At the same time, since they wait for seconds. */
describe.concurrent('429 with Retry-After', () => {
  it.skipIf(!databaseUrl)('if the first call does not end in time', async () => {
    const title = randomUUID();
    const key = randomUUID();
    const { id: user_id } = world.users.member;
    const blocked = { user_id, procedure: 'cards.create', key, hashes: ['x'], holder: null };

    const answer = await transact(await testDb(), async (db) => {
      await claimKey(db, blocked);
      return world.asMember.post(CREATE, { title }, keyed(key));
    });

    expect(answer).toMatchObject({ status: 429, body: { error: true } });
    expect(answer.headers.get('x-error-reason')).toBe('idempotency_key_running');
    expect(answer.headers.get('retry-after')).toBe('5');
    expect(await countCards(title)).toBe(0);
  });

  it('while work in several steps is still running', async () => {
    const { board } = await givenMasterBoard();
    const key = randomUUID();
    await world.asSuperadmin.post(SYNC, { board_id: board }, keyed(key));
    await query(
      await testDb(),
      sql`update idempotency_keys set finished_at = null, answer = null, held_until = now() + interval '1 hour' where key = ${key}`,
    );

    const answer = await world.asSuperadmin.post(SYNC, { board_id: board }, keyed(key));

    expect(answer.status).toBe(429);
    expect(answer.headers.get('x-error-reason')).toBe('idempotency_key_running');
    expect(answer.headers.get('retry-after')).toBe('5');
  });

  it('but not if its process ended: it is waited for until then, and taken over', async () => {
    const { board } = await givenMasterBoard();
    const key = randomUUID();
    const first = await world.asSuperadmin.post(SYNC, { board_id: board }, keyed(key));
    await query(
      await testDb(),
      sql`update idempotency_keys set finished_at = null, answer = null, held_until = now() + interval '1 second' where key = ${key}`,
    );

    const second = await world.asSuperadmin.post(SYNC, { board_id: board }, keyed(key));

    expect(second).toMatchObject({ status: 200, body: first.body });
    expect(replayed(second)).toBeNull();
    const runs = await query(await testDb(), sql`select id from template_runs where board_id = ${board}`);
    expect(runs).toHaveLength(2);
  });
});

describe('an answer with a secret', () => {
  it('400 for a repeat: it was executed, and its answer is stored nowhere', async () => {
    const { asMember } = await givenWorld();
    const key = randomUUID();
    const path = '/v1/account/start-second-factor';

    const first = await asMember.post(path, { password: PASSWORD }, keyed(key));
    const second = await asMember.post(path, { password: PASSWORD }, keyed(key));

    expect(first.status).toBe(200);
    expect(second).toMatchObject({ status: 400, body: { error: true, data: [] } });
    expect(second.headers.get('x-error-reason')).toBe('idempotency_answer_not_kept');
    expect(await storedKey(key)).toMatchObject({ answer: null });
  });

  it('counts wrong codes that are sent with a key', async () => {
    const { asMember, users } = await givenWorld();
    await asMember.post('/v1/account/start-second-factor', { password: PASSWORD });

    const answer = await asMember.post('/v1/account/confirm-second-factor', { code: '000000' }, keyed());

    expect(answer.status).toBe(422);
    const [user] = await query(
      await testDb(),
      sql<{ totp_failures: number }>`select totp_failures from users where id = ${users.member.id}`,
    );
    expect(user!.totp_failures).toBe(1);
  });
});

describe('what the keys of one user take', () => {
  const MEBIBYTE = 1024 * 1024;
  /** A user who has used so much, some hours ago. */
  const givenUsage = async (used: { keys?: number; answer_bytes?: number }, hours = 23) => {
    const own = await givenWorld();
    await query(
      await testDb(),
      sql`insert into idempotency_usage (user_id, hour, keys, answer_bytes)
        values (${own.users.member.id}, date_trunc('hour', now()) - make_interval(hours => ${hours}), ${used.keys ?? 0}, ${used.answer_bytes ?? 0})`,
    );
    return own;
  };
  const usage = async ({ users }: World) =>
    query(
      await testDb(),
      sql<{ keys: number; answer_bytes: number }>`
        select sum(keys)::int as keys, sum(answer_bytes)::int as answer_bytes from idempotency_usage
        where user_id = ${users.member.id} and hour > now() - interval '2 hours'`,
    );

  it('is counted when a call succeeded: keys and bytes of answers', async () => {
    const own = await givenWorld();
    const keys = [randomUUID(), randomUUID()];

    for (const key of keys) await own.asMember.post(CREATE, { title: key }, keyed(key));
    await own.asMember.post(CREATE, { title: keys[0]! }, keyed(keys[0]));
    await own.asMember.post(CREATE, { title: 'x', group_id: 2_000_000_000 }, keyed());

    const answers = await Promise.all(keys.map(async (key) => (await storedKey(key))!.answer as string));
    expect(await usage(own)).toEqual([{ keys: 2, answer_bytes: Buffer.byteLength(answers.join('')) }]);
  });

  it('is at most 32 MiB of answers in 24 hours: others are not stored, and a repeat is a 400, not a second card', async () => {
    const own = await givenUsage({ answer_bytes: 32 * MEBIBYTE - 10 });
    const [title, key] = [randomUUID(), randomUUID()];

    const first = await own.asMember.post(CREATE, { title }, keyed(key));
    const second = await own.asMember.post(CREATE, { title }, keyed(key));

    expect(first.status).toBe(201);
    expect(second).toMatchObject({ status: 400, body: { error: true, data: [] } });
    expect(second.headers.get('x-error-reason')).toBe('idempotency_answer_not_kept');
    expect(await storedKey(key)).toMatchObject({ answer: null, finished_at: expect.any(Date) });
    expect(await countCards(title)).toBe(1);
    expect(await usage(own)).toEqual([{ keys: 1, answer_bytes: 0 }]);
    const ofOther = await own.asOwner.post(CREATE, { title }, keyed(key));
    const again = await own.asOwner.post(CREATE, { title }, keyed(key));
    expect([ofOther, again].map(replayed)).toEqual([null, 'true']);
  });

  it('429 for a new key after 250,000 in 24 hours; repeats of earlier ones and calls without a key work', async () => {
    const own = await givenWorld();
    const [title, other, key] = [randomUUID(), randomUUID(), randomUUID()];
    await own.asMember.post(CREATE, { title }, keyed(key));
    await query(await testDb(), sql`update idempotency_usage set keys = 250000 where user_id = ${own.users.member.id}`);

    const refused = await own.asMember.post(CREATE, { title: other }, keyed());
    const overRpc = await sendRpc(own.asMember, 'cards.create', card(other), randomUUID());
    const repeated = await own.asMember.post(CREATE, { title }, keyed(key));
    const without = await own.asMember.post(CREATE, { title });

    expect(refused).toMatchObject({ status: 429, body: { error: true } });
    expect(refused.headers.get('x-error-reason')).toBe('idempotency_keys_used_up');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(3600);
    expect(overRpc.body.error.json.data).toMatchObject({ httpStatus: 429, reason: 'idempotency_keys_used_up' });
    expect(await countCards(other)).toBe(0);
    expect(replayed(repeated)).toBe('true');
    expect(without.status).toBe(201);
  });

  it('429 for an expired key that was not removed yet, and not its old answer', async () => {
    const own = await givenUsage({ keys: 249_999 });
    const key = randomUUID();
    await own.asMember.post(CREATE, { title: key }, keyed(key));
    await query(
      await testDb(),
      sql`update idempotency_keys set created_at = now() - interval '24 hours 1 second' where key = ${key}`,
    );

    expect((await own.asMember.post(CREATE, { title: key }, keyed(key))).status).toBe(429);
  });

  it('is free again after 25 hours', async () => {
    const own = await givenUsage({ keys: 250_000, answer_bytes: 32 * MEBIBYTE }, 25);
    const key = randomUUID();

    await own.asMember.post(CREATE, { title: key }, keyed(key));
    const second = await own.asMember.post(CREATE, { title: key }, keyed(key));
    expect(replayed(second)).toBe('true');
  });

  it('counts work in several steps, too', async () => {
    const { board } = await givenMasterBoard();
    const own = await givenWorld();

    await own.asSuperadmin.post(SYNC, { board_id: board }, keyed());

    const { superadmin } = own.users;
    expect(await usage({ ...own, users: { ...own.users, member: superadmin } })).toMatchObject([{ keys: 1 }]);
  });
});

describe('the cost of a key', () => {
  it.skipIf(!databaseUrl)('is nothing without one, four statements with a new one, and less for a repeat', async () => {
    const key = randomUUID();
    const create = (headers?: Record<string, string>) =>
      countStatements(() => world.asMember.post(CREATE, { title: 'Counted' }, headers));

    const without = await create();
    const first = await create(keyed(key));
    const repeated = await create(keyed(key));

    // Find the caller, and insert the card.
    expect(without).toBe(2);
    // Begin, claim, finish, commit.
    expect(first).toBe(without + 4);
    expect(repeated).toBe(without + 3);
  });
});

describe('the hash of an input', () => {
  it('is still known after JWT_SECRET was rotated', async () => {
    const secretBox = makeSecretBox(['the secret of the service after it was rotated', TEST_SECRET]);
    const { url } = await givenService({}, { secretBox });
    const title = randomUUID();
    const headers = keyed();

    const first = await world.asMember.post(CREATE, { title }, headers);
    const second = await makeCaller(url, world.asMember.token).post(CREATE, { title }, headers);

    expect(second).toMatchObject({ status: 201, body: first.body });
    expect(replayed(second)).toBe('true');
  });

  it('can not be used to guess a password', async () => {
    const key = randomUUID();
    const input = { name: 'New', email: `${key}@example.test`, password: PASSWORD };

    await world.asSuperadmin.post('/services/platforms/v1/users/create', input, keyed(key));

    const stored = await query(
      await testDb(),
      sql<{ input_hash: string }>`select input_hash from idempotency_keys where key = ${key}`,
    );
    const plain = createHash('sha256')
      .update(JSON.stringify([null, input]))
      .digest('base64url');
    expect(stored[0]!.input_hash).toHaveLength(43);
    expect(stored[0]!.input_hash).not.toBe(plain);
  });
});
