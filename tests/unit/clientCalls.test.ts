import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { format } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Client, ClientOptions } from '../../client/client.ts';
import {
  broken,
  errorOf,
  type GivenAnswer,
  givenAnswers,
  givenFastRetries,
  networkFailure,
  page,
  refusal,
  success,
} from '../harness/client.ts';

const USER = { email: 'a@example.test', password: 'a password' };
const CODE_NEEDED = refusal(
  401,
  { reason: 'code_required' },
  'This account is protected by a second factor: a code is needed.',
);

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('a call that failed', () => {
  const LIST = (client: Client) => client.boards.list.query();
  const CREATE = (client: Client) => client.cards.create.mutate({ title: 'Once' });

  it.each([
    ['no answer', networkFailure],
    ['502', page(502)],
    ['503', page(503)],
    ['504', page(504)],
    ['429', refusal(429)],
  ])('is retried after %s with growing pauses, a mutation with the same key', async (_, failure) => {
    const query = givenFastRetries({}, failure, failure, failure, success({ boards: [] }));
    expect(await LIST(query.client)).toEqual({ boards: [] });
    expect(query.pauses()).toEqual([250, 500, 1000]);

    const mutation = givenFastRetries({}, failure, failure, failure, success({ card: { title: 'Once' } }));
    expect(await CREATE(mutation.client)).toEqual({ card: { title: 'Once' } });
    const keys = mutation.keys();
    expect(keys).toHaveLength(4);
    expect(keys[0]).toMatch(/^[\da-f]{32}$/);
    expect(new Set(keys).size).toBe(1);
  });

  it.each([400, 403, 404, 422, 500])('is not retried after %i', async (status) => {
    for (const call of [LIST, CREATE]) {
      const { client, called } = givenFastRetries({}, refusal(status));

      expect((await errorOf(call(client))).status).toBe(status);
      expect(called()).toHaveLength(1);
    }
  });

  it('is not retried after a lost answer if it is a sign-in', async () => {
    const { client, called, keys } = givenFastRetries({}, networkFailure);

    await errorOf(client.auth.authenticate.mutate(USER));

    expect(called()).toEqual(['auth.authenticate']);
    expect(keys()).toEqual([null]);
  });

  it('is retried after a 429 even if it is a mutation, but not before Retry-After', async () => {
    const { client, pauses } = givenFastRetries(
      {},
      refusal(429, { retryAfterSeconds: 30 }),
      success({ card: { title: 'Once' } }),
    );

    expect(await CREATE(client)).toMatchObject({ card: { title: 'Once' } });
    expect(pauses()).toEqual([30_250]);
  });

  it('waits as long as the Retry-After of a proxy says', async () => {
    const { client, pauses } = givenFastRetries({}, page(503, { 'retry-after': '7' }), success({ boards: [] }));

    await LIST(client);

    expect(pauses()).toEqual([7250]);
  });

  it('throws at once if it would have to wait for more than a minute', async () => {
    const { client, called } = givenFastRetries({}, refusal(429, { retryAfterSeconds: 61 }));

    expect(await errorOf(LIST(client))).toMatchObject({ status: 429, retryAfterSeconds: 61 });
    expect(called()).toHaveLength(1);
  });

  it('throws after three retries, or as many as configured', async () => {
    const usual = givenFastRetries({}, ...Array(9).fill(networkFailure));
    await errorOf(LIST(usual.client));
    expect(usual.called()).toHaveLength(4);

    const never = givenAnswers({ retries: 0 }, networkFailure);
    await errorOf(LIST(never.client));
    expect(never.called()).toHaveLength(1);
  });
});

describe('an idempotency key', () => {
  it('is new for each mutation, and listed for a batch', async () => {
    const { client, keys } = givenAnswers({}, success({}, {}), success({}));

    const titles = ['First', 'Second'];
    await Promise.all(titles.map((title) => client.cards.create.mutate({ title })));
    await client.cards.create.mutate({ title: 'Third' });

    const listed = keys().flatMap((header) => header!.split(','));
    expect(listed).toHaveLength(3);
    expect(new Set(listed).size).toBe(3);
  });

  it('is not sent with queries', async () => {
    const { client, keys } = givenAnswers({}, success({ boards: [] }));

    await client.boards.list.query();

    expect(keys()).toEqual([null]);
  });

  it('can be chosen for a call', async () => {
    const { client, keys } = givenAnswers({}, success({}, {}));

    await Promise.all([
      client.cards.create.mutate({ title: 'First' }, { idempotencyKey: 'order 7' }),
      client.cards.create.mutate({ title: 'Second' }),
    ]);

    expect(keys()).toEqual([expect.stringMatching(/^order 7,[\da-f]{32}$/)]);
  });

  it.each(['', 'a,b', ' a', 'a ', 'é', 'k'.repeat(256)])(
    'throws without a call if it is %j',
    async (idempotencyKey) => {
      const { client, called } = givenAnswers({});

      const error = await errorOf(client.cards.create.mutate({ title: 'First' }, { idempotencyKey }));

      expect(error.message).toBe('idempotencyKey must have 1 to 255 printable ASCII characters without commas.');
      expect(called()).toEqual([]);
    },
  );

  it.each(['k', 'k'.repeat(255)])('may be %s', async (idempotencyKey) => {
    const { client, keys } = givenAnswers({}, success({}));

    await client.cards.create.mutate({ title: 'First' }, { idempotencyKey });

    expect(keys()).toEqual([idempotencyKey]);
  });
});

describe('a signal', () => {
  it('ends the wait for a retry', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const { client, called } = givenAnswers({}, refusal(429, { retryAfterSeconds: 30 }));
    const controller = new AbortController();

    const thrown = client.boards.list.query(undefined, { signal: controller.signal }).catch((error) => error);
    await vi.advanceTimersByTimeAsync(1000);
    controller.abort(new Error('Enough.'));

    expect(await thrown).toEqual(new Error('Enough.'));
    expect(called()).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends only its own call of a batch', async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    const { client } = givenAnswers({}, () => promise);
    const controller = new AbortController();

    const ended = client.boards.list.query(undefined, { signal: controller.signal }).catch((error) => error);
    const other = client.boards.list.query();
    controller.abort();

    expect(await ended).toMatchObject({ name: 'AbortError' });
    resolve(await success({ boards: [] }, { boards: [] })());
    expect(await other).toEqual({ boards: [] });
  });

  it('that is aborted before the call prevents it from being sent', async () => {
    const { client, called } = givenAnswers({});

    const thrown = await client.boards.list.query({}, { signal: AbortSignal.abort() }).catch((error) => error);

    expect(thrown).toMatchObject({ name: 'AbortError' });
    expect(called()).toEqual([]);
  });

  it('that is aborted during the sign-in prevents its call from being sent', async () => {
    const { promise: signedIn, resolve } = Promise.withResolvers<Response>();
    const { client, called } = givenAnswers({ signIn: USER }, () => signedIn, success({ card: { title: 'Kept' } }));
    const controller = new AbortController();

    const ended = client.cards.create.mutate({ title: 'Ended' }, { signal: controller.signal }).catch((error) => error);
    const other = client.cards.create.mutate({ title: 'Kept' });
    controller.abort();
    expect(await ended).toMatchObject({ name: 'AbortError' });
    resolve(await success({ token: 'a token' })());

    expect(await other).toMatchObject({ card: { title: 'Kept' } });
    expect(called()).toEqual(['auth.authenticate', 'cards.create']);
  });

  it('that is used for many calls keeps no listeners of finished ones', async () => {
    const { client } = givenAnswers({ retries: 0 }, success({ boards: [] }), refusal(500));
    const { signal } = new AbortController();

    await client.boards.list.query({}, { signal });
    await errorOf(client.boards.list.query({}, { signal }));

    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('an answer', () => {
  it('that is not from Deckhand is reported as such', async () => {
    const { client } = givenAnswers({}, page(200));

    expect(await errorOf(client.boards.list.query())).toMatchObject({
      status: 200,
      message: expect.stringMatching(/^The response with status 200 is not from Deckhand\. Check the url/),
    });
  });

  it.each([
    ['not JSON, despite its content type', 'Forbidden'],
    ['empty', ''],
  ])('keeps its status if its body is %s', async (_, body) => {
    const headers = { 'content-type': 'application/json' };
    const { client } = givenAnswers({}, async () => new Response(body, { status: 403, headers }));

    expect(await errorOf(client.boards.list.query())).toMatchObject({
      status: 403,
      message: expect.stringMatching(/^The response with status 403 is not from Deckhand\. Check the url/),
    });
  });

  it.each(['ECONNREFUSED', 'ECONNRESET'])('that never came is explained in one line (%s)', async (code) => {
    const { client } = givenAnswers({ retries: 0 }, broken(code));

    expect((await errorOf(client.boards.list.query())).message).toBe(
      'No response (fetch failed: wrong version number:). Check the url, and that the service runs.',
    );
  });

  it('that breaks off counts as no answer, and a query is retried', async () => {
    const body = new ReadableStream({ start: (stream) => stream.error(new TypeError('terminated')) });
    const headers = { 'content-type': 'application/json' };
    const { client } = givenFastRetries({}, async () => new Response(body, { headers }), success({ boards: [] }));

    expect(await client.boards.list.query()).toEqual({ boards: [] });
  });
});

describe('a client', () => {
  it('can be printed without calling anything', async () => {
    const { client, called } = givenAnswers({}, networkFailure, networkFailure);

    expect(JSON.stringify({ client })).toBe('{}');
    expect(`${client} ${client.cards.list}`).toBe('client client.cards.list');
    expect(format('%s', client.cards)).toBe('client.cards');
    // Calls are sent in the next turn of the event loop.
    await pause(1);
    expect(called()).toEqual([]);
  });
});

describe('a client that signs in', () => {
  it('sends a fixed code once, and later the token of the remembered device', async () => {
    const { client, sent } = givenAnswers(
      { signIn: { ...USER, code: 'recovery', is_recovery: true } },
      success({ token: 'first' }),
      refusal(401),
      success({ token: 'second' }),
      success({ boards: [] }),
    );

    await client.boards.list.query();

    const [first, , second] = sent();
    expect(first).toEqual({ ...USER, code: 'recovery', is_recovery: true });
    expect(second).toEqual({ ...USER, token: 'first' });
  });

  it('asks for a code when one is needed, and again when the device is no longer remembered', async () => {
    const codes = ['111111', '222222'];
    const { client, sent } = givenAnswers(
      { signIn: { ...USER, code: async () => codes.shift() } },
      ...[CODE_NEEDED, success({ token: 'first' }), success({ boards: [] })],
      ...[refusal(401), success({ token: 'second' }), success({ boards: [] })],
      ...[refusal(401), CODE_NEEDED, success({ token: 'third' }), success({ boards: [] })],
    );

    for (const _ of ['new', 'remembered', 'no longer remembered']) await client.boards.list.query();

    expect(sent().filter(Boolean)).toEqual([
      USER,
      { ...USER, code: '111111', is_recovery: false },
      { ...USER, token: 'first' },
      { ...USER, token: 'second' },
      { ...USER, token: 'second', code: '222222', is_recovery: false },
    ]);
  });

  it('does not sign in twice when the 401 of a call arrives after another call renewed the token', async () => {
    const { promise: late, resolve } = Promise.withResolvers<Response>();
    const { client, called } = givenAnswers(
      { signIn: USER, token: 'old' },
      ...[refusal(401), () => late, success({ token: 'new' }), success({ boards: [] }), success({ card: {} })],
    );

    const [listed, created] = [client.boards.list.query(), client.cards.create.mutate({ title: 'Kept' })];
    await listed;
    resolve(await refusal(401)());
    await created;

    expect(called()).toEqual(['boards.list', 'cards.create', 'auth.authenticate', 'boards.list', 'cards.create']);
  });

  it.each(['wrong_credentials', 'code_wrong', 'not_signed_in'])(
    '401 without asking for a code when the reason is %s, whatever the message says',
    async (reason) => {
      const code = vi.fn();
      const refused = refusal(401, { reason }, 'A code is needed.');
      const { client, called } = givenAnswers({ signIn: { ...USER, code } }, refused);

      expect(await errorOf(client.boards.list.query())).toMatchObject({ status: 401, reason });
      expect(code).not.toHaveBeenCalled();
      expect(called()).toEqual(['auth.authenticate']);
    },
  );

  it('401 when it gets no code', async () => {
    const { client, called } = givenAnswers({ signIn: { ...USER, code: () => undefined } }, CODE_NEEDED);

    expect(await errorOf(client.boards.list.query())).toMatchObject({
      status: 401,
      message: 'This account is protected by a second factor: a code is needed.',
    });
    expect(called()).toEqual(['auth.authenticate']);
  });
});

describe('an error thrown by a function of the caller', () => {
  const fail = () => {
    throw new Error('Cancelled.');
  };
  const later = async () => fail();

  it.each<[string, Partial<ClientOptions>, ...GivenAnswer[]]>([
    ['token', { token: fail }],
    ['token', { token: fail, signIn: USER }],
    ['signIn.code', { signIn: { ...USER, code: fail } }, CODE_NEEDED],
    ['signIn.code', { signIn: { ...USER, code: later } }, CODE_NEEDED],
    ['onSignIn', { signIn: USER, onSignIn: fail }, success({ token: 'a token' })],
    ['onSignIn', { signIn: USER, onSignIn: later }, success({ token: 'a token' })],
  ])('is reported as thrown by %s', async (name, options, ...answers) => {
    const { client } = givenAnswers({ retries: 0, ...options }, ...answers);

    const error = await errorOf(client.boards.list.query());

    expect(error).toMatchObject({ status: undefined, message: `${name} threw an error: Cancelled.` });
    expect(error.cause).toEqual(new Error('Cancelled.'));
  });
});
