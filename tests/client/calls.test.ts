import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { format } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import type { Client, ClientOptions } from '../../client/client.ts';
import {
  broken,
  errorOf,
  type GivenAnswer,
  givenAnswers,
  givenClient,
  givenFastRetries,
  networkFailure,
  page,
  refusal,
  success,
} from '../harness/client.ts';
import { fakeTimers } from '../harness/timers.ts';

const USER = { email: 'a@example.test', password: 'a password' };
const CODE_NEEDED = refusal(401, { reason: 'code_required' }, 'A code is needed.');

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

  it('is retried after a lost answer if it is a sign-in, without a key and at most three times', async () => {
    const { client, keys } = givenFastRetries({}, networkFailure, page(502), success({ token: 'a token' }));
    const lost = givenFastRetries({}, networkFailure, networkFailure, networkFailure, networkFailure);

    expect(await client.auth.authenticate.mutate(USER)).toEqual({ token: 'a token' });
    await errorOf(lost.client.auth.authenticate.mutate(USER));

    expect(keys()).toEqual([null, null, null]);
    expect(lost.called()).toHaveLength(4);
  });

  it('is not retried after a lost answer if it is a sign-in with a code, which works once', async () => {
    const { client, called } = givenFastRetries({}, networkFailure);

    await errorOf(client.auth.authenticate.mutate({ ...USER, code: '123456' }));

    expect(called()).toHaveLength(1);
  });

  it('is sent after a sign-in whose answer was lost', async () => {
    const answers = [networkFailure, success({ token: 'a token' }), success({ boards: [] })];
    const { client, called } = givenFastRetries({ signIn: USER }, ...answers);

    expect(await client.boards.list.query()).toEqual({ boards: [] });
    expect(called()).toEqual(['auth.authenticate', 'auth.authenticate', 'boards.list']);
  });

  it.each([
    ['a 429, even a mutation', refusal(429, { retryAfterSeconds: 30 }), 30_250],
    ['the page of a proxy', page(503, { 'retry-after': '7' }), 7250],
  ])('waits as long as the Retry-After of %s says', async (_, failure, milliseconds) => {
    const { client, pauses } = givenFastRetries({}, failure, success({ card: { title: 'Once' } }));

    expect(await CREATE(client)).toMatchObject({ card: { title: 'Once' } });
    expect(pauses()).toEqual([milliseconds]);
  });

  it.each(['service_busy', 'over_rate_limit'])('throws %s at once if the wait is over a minute', async (reason) => {
    const { client, called } = givenFastRetries({}, refusal(429, { reason, retryAfterSeconds: 61 }));

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
  it('is new for each mutation, listed for a batch, and not sent with queries', async () => {
    const { client, keys } = givenAnswers({}, success({}, {}), success({}), success({ boards: [] }));

    await Promise.all(['First', 'Second'].map((title) => client.cards.create.mutate({ title })));
    await client.cards.create.mutate({ title: 'Third' });
    await client.boards.list.query();

    const [listed, single, none] = keys();
    expect(new Set([...listed!.split(','), single]).size).toBe(3);
    expect(none).toBeNull();
  });

  it.each(['order 7', 'k', 'k'.repeat(255)])('can be chosen for a call: %s', async (idempotencyKey) => {
    const { client, keys } = givenAnswers({}, success({}, {}));

    await Promise.all([
      client.cards.create.mutate({ title: 'First' }, { idempotencyKey }),
      client.cards.create.mutate({ title: 'Second' }),
    ]);

    expect(keys()[0]).toMatch(new RegExp(`^${idempotencyKey},[\\da-f]{32}$`));
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
});

describe('a signal', () => {
  it('ends the wait for a retry', async () => {
    fakeTimers('performance');
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

  it('that is aborted before the call, or during the sign-in, prevents it from being sent', async () => {
    const { promise: signedIn, resolve } = Promise.withResolvers<Response>();
    const { client, called } = givenAnswers({ signIn: USER }, () => signedIn, success({ card: { title: 'Kept' } }));
    const create = (title: string, signal?: AbortSignal) =>
      client.cards.create.mutate({ title }, { signal }).catch((error) => error);
    const controller = new AbortController();

    expect(await create('Never', AbortSignal.abort())).toMatchObject({ name: 'AbortError' });
    const [ended, other] = [create('Ended', controller.signal), create('Kept')];
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
  const json = { 'content-type': 'application/json' };

  it.each<[number, string, GivenAnswer]>([
    [200, 'a page', page(200)],
    [403, 'not JSON, despite its content type', async () => new Response('Forbidden', { status: 403, headers: json })],
    [403, 'empty', async () => new Response('', { status: 403, headers: json })],
  ])('that is not from Deckhand keeps its status %i if it is %s', async (status, _, answer) => {
    const { client } = givenAnswers({}, answer);

    expect(await errorOf(client.boards.list.query())).toMatchObject({
      status,
      message: expect.stringContaining(`The response with status ${status} is not from Deckhand. Check the url`),
    });
  });

  it('that redirects is not followed, since its target would get the body and the headers', async () => {
    const location = 'https://deckhand.example.test/trpc/boards.list';
    const modes: unknown[] = [];
    const { client } = givenAnswers({}, async (_address, request) => {
      modes.push(request?.redirect);
      return new Response(null, { status: 308, headers: { location } });
    });

    expect(await errorOf(client.boards.list.query())).toMatchObject({
      status: 308,
      message: `The response with status 308 is not from Deckhand. It redirects to ${location}: set the url to that address, without its path.`,
    });
    expect(modes).toEqual(['manual']);
  });

  it.each(['ECONNREFUSED', 'ECONNRESET'])('that never came is explained in one line (%s)', async (code) => {
    const { client } = givenAnswers({ retries: 0 }, broken(code));

    expect((await errorOf(client.boards.list.query())).message).toBe(
      'No response (fetch failed: wrong version number:). Check the url, and that the service runs.',
    );
  });

  it('that breaks off counts as no answer, and a query is retried', async () => {
    const body = new ReadableStream({ start: (stream) => stream.error(new TypeError('terminated')) });
    const broken = async () => new Response(body, { headers: json });
    const { client } = givenFastRetries({}, broken, success({ boards: [] }));

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

    expect(await errorOf(client.boards.list.query())).toMatchObject({ status: 401, reason: 'code_required' });
    expect(called()).toEqual(['auth.authenticate']);
  });
});

describe('a call that needs fresh proof', () => {
  const PROOF_NEEDED = refusal(422, { reason: 'proof_required' });

  it('is repeated after the password was given, once for calls at the same time', async () => {
    let isProven = false;
    const { client, called, sent } = givenClient({
      ...{ url: 'http://service.test', signIn: USER, token: 'a token' },
      fetch: async (address) => {
        const isProof = String(address).includes('account.prove');
        isProven ||= isProof;
        return isProof ? success(undefined)() : (isProven ? success({ secret: 'x' }) : PROOF_NEEDED)();
      },
    });

    await Promise.all([1, 2].map((id) => client.webhooks.rotateSecret.mutate({ id })));

    const at = called().indexOf('account.prove');
    expect(called().filter((each) => each === 'account.prove')).toHaveLength(1);
    expect(sent()[at]).toEqual({ password: USER.password });
  });

  it('asks for a code where the service does', async () => {
    const code = vi.fn(async () => '123456');
    const { client, sent } = givenAnswers(
      { signIn: { ...USER, code }, token: 'a token' },
      ...[PROOF_NEEDED, PROOF_NEEDED, success(undefined), success({ secret: 'x' })],
    );

    await client.webhooks.rotateSecret.mutate({ id: 1 });

    expect(sent()[2]).toEqual({ password: USER.password, code: '123456', is_recovery: false });
  });

  it('422 without a password to give, and if it is refused again', async () => {
    const refused = async (options: Partial<ClientOptions>, ...answers: GivenAnswer[]) => {
      const { client, called } = givenAnswers({ token: 'a token', ...options }, ...answers);
      const { reason } = await errorOf(client.webhooks.rotateSecret.mutate({ id: 1 }));
      return [reason, called().length];
    };

    expect(await refused({}, PROOF_NEEDED)).toEqual(['proof_required', 1]);
    expect(await refused({ signIn: USER }, PROOF_NEEDED, success(undefined), PROOF_NEEDED)).toEqual([
      'proof_required',
      3,
    ]);
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
  ])('is reported as thrown by %s, and is not retried', async (name, options, ...answers) => {
    const onRetry = vi.fn();
    const { client } = givenAnswers({ onRetry, ...options }, ...answers);

    const error = await errorOf(client.boards.list.query());

    expect(error).toMatchObject({ status: undefined, message: `${name} threw an error: Cancelled.` });
    expect(error.cause).toEqual(new Error('Cancelled.'));
    expect(onRetry).not.toHaveBeenCalled();
  });
});
