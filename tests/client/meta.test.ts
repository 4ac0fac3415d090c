import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type ClientOptions,
  DeckhandError,
  isDeckhandError,
  isRefusal,
  type RequestEvent,
  type ResponseEvent,
  type RetryEvent,
} from '../../client/client.ts';
import {
  errorOf,
  type GivenAnswer,
  givenAnswers,
  givenFastRetries,
  networkFailure,
  refusal,
  success,
} from '../harness/client.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** An answer with these headers. */
const withHeaders =
  (answer: GivenAnswer, headers: Record<string, string>): GivenAnswer =>
  async () => {
    const response = await answer();
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    return response;
  };

describe('withMeta', () => {
  const QUOTA = { 'x-ratelimit-limit': '600', 'x-ratelimit-remaining': '597' };

  it('returns the result with facts about its response', async () => {
    const answered = withHeaders(success({ boards: [] }), { 'x-request-id': 'of-the-service', ...QUOTA });
    const { client } = givenAnswers({}, answered);

    expect(await client.boards.list.query.withMeta()).toEqual({
      data: { boards: [] },
      meta: {
        requestId: 'of-the-service',
        replayed: false,
        attempts: 1,
        quota: { limit: 600, remaining: 597 },
      },
    });
  });

  it('has the id that was sent, and no quota, if a proxy removed the headers', async () => {
    const { client, header } = givenAnswers({}, success({ boards: [] }));

    const { meta } = await client.boards.list.query.withMeta();

    expect(meta).toEqual({ requestId: header('x-request-id')[0], replayed: false, attempts: 1, quota: undefined });
  });

  it.each([
    ['true', [true, true, true]],
    ['1', [false, true, false]],
    ['0,2', [true, false, true]],
  ])('says of each call of a batch whether it was replayed: %s', async (replayed, expected) => {
    const answer = withHeaders(success({}, {}, {}), { 'idempotent-replayed': replayed, ...QUOTA });
    const { client } = givenAnswers({}, answer);
    const create = (idempotencyKey: string) => client.tags.create.mutate.withMeta({ name: 'A' }, { idempotencyKey });

    const answers = await Promise.all(['a', 'b', 'c'].map(create));

    expect(answers.map(({ meta }) => meta.replayed)).toEqual(expected);
    expect(new Set(answers.map(({ meta }) => meta.requestId)).size).toBe(1);
    expect(answers.map(({ meta }) => meta.quota?.remaining)).toEqual([597, 597, 597]);
  });

  it('counts the attempts, and throws like a call without it', async () => {
    const { client } = givenFastRetries({}, refusal(429), success({ boards: [] }), refusal(403));

    expect((await client.boards.list.query.withMeta()).meta.attempts).toBe(2);
    expect((await errorOf(client.boards.list.query.withMeta())).status).toBe(403);
  });

  it('is not there for each and follow', () => {
    const { client } = givenAnswers({});
    const { each } = client.boards.list as unknown as { each: { withMeta: () => void } };
    const { follow } = client.events as unknown as { follow: { withMeta: () => void } };

    expect(() => each.withMeta()).toThrow("client.boards.list.each.withMeta can't be called");
    expect(() => follow.withMeta()).toThrow("client.events.follow.withMeta can't be called");
  });
});

describe('hooks', () => {
  function givenHooks(options: Partial<ClientOptions>, ...answers: GivenAnswer[]) {
    const requests: RequestEvent[] = [];
    const responses: ResponseEvent[] = [];
    const retries: RetryEvent[] = [];
    const hooks = {
      onRequest: (event: RequestEvent) => void requests.push(event),
      onResponse: (event: ResponseEvent) => void responses.push(event),
      onRetry: (event: RetryEvent) => void retries.push(event),
    };
    return { requests, responses, retries, ...givenFastRetries({ ...hooks, ...options }, ...answers) };
  }
  const MILLISECONDS = expect.any(Number);

  it('see each attempt of a call', async () => {
    const busy = refusal(429, { reason: 'service_busy', retryAfterSeconds: 2 });
    const { client, header, ...seen } = givenHooks({}, networkFailure, busy, success({ card: {} }));

    await client.cards.create.mutate({ title: 'A secret title' });

    const [first, second, third] = [0, 1, 2].map((index) => ({
      ...{ procedure: 'cards.create', kind: 'mutation' },
      ...{ attempt: index + 1, requestId: header('x-request-id')[index] },
    }));
    expect(seen.requests).toEqual([first, second, third]);
    expect(seen.responses).toEqual([
      { ...first, status: undefined, reason: undefined, milliseconds: MILLISECONDS },
      { ...second, status: 429, reason: 'service_busy', milliseconds: MILLISECONDS },
      { ...third, status: 200, reason: undefined, milliseconds: MILLISECONDS },
    ]);
    expect(seen.retries).toEqual([
      { ...first, status: undefined, reason: undefined, waitMilliseconds: 250 },
      { ...second, status: 429, reason: 'service_busy', waitMilliseconds: 2500 },
    ]);
  });

  it('see each call of a batch, with one request id', async () => {
    const { client, requests } = givenHooks({}, success({ boards: [] }, { tags: [], next_cursor: null }));

    await Promise.all([client.boards.list.query(), client.tags.list.query()]);

    expect(requests.map(({ procedure }) => procedure)).toEqual(['boards.list', 'tags.list']);
    expect(new Set(requests.map(({ requestId }) => requestId)).size).toBe(1);
  });

  it('see the sign-in, and never a secret', async () => {
    const signIn = { email: 'a@example.test', password: 'a password' };
    const { client, ...seen } = givenHooks(
      { signIn, token: 'an-old-token', headers: { 'x-gateway': 'a-gateway-secret' } },
      ...[refusal(401, { reason: 'not_signed_in' }), success({ token: 'a-new-token' }), success({ boards: [] })],
    );

    await client.boards.list.query(undefined, { headers: { 'x-call': 'a-call-secret' } });

    expect(seen.requests.map(({ procedure, attempt }) => `${procedure} ${attempt}`)).toEqual([
      ...['boards.list 1', 'auth.authenticate 1', 'boards.list 2'],
    ]);
    expect(seen.retries).toMatchObject([{ procedure: 'boards.list', attempt: 1, status: 401, waitMilliseconds: 0 }]);
    expect(JSON.stringify(seen)).not.toMatch(/password|token"|-token|secret|example/);
  });

  it('see that a call waits for the rate limit', async () => {
    const over = refusal(429, { reason: 'over_rate_limit', retryAfterSeconds: 30 });
    const { client, retries } = givenHooks({}, over, success({ boards: [] }));

    await client.boards.list.query();

    expect(retries).toMatchObject([{ attempt: 1, reason: 'over_rate_limit', waitMilliseconds: 30_000 }]);
  });

  it('see the connections of a stream', async () => {
    const event = 'id: 1\ndata: {"json":{"type":"card.created"}}\n\n';
    const stream: GivenAnswer = async () => new Response(event, { headers: { 'content-type': 'text/event-stream' } });
    const { client, ...seen } = givenHooks({}, networkFailure, stream);

    for await (const { type } of client.events.follow()) if (type === 'card.created') break;

    expect(seen.requests.map(({ kind, attempt }) => `${kind} ${attempt}`)).toEqual([
      ...['subscription 1', 'subscription 2'],
    ]);
    expect(seen.responses.map(({ status }) => status)).toEqual([undefined, 200]);
    expect(seen.retries).toMatchObject([{ procedure: 'events.follow', attempt: 1, waitMilliseconds: 250 }]);
  });

  it.each(['onRequest', 'onResponse', 'onRetry'])('do not break a call if %s throws or rejects', async (name) => {
    const printed = vi.spyOn(console, 'error').mockReturnValue();
    const broken = new Error('A bug in the hook.');
    const hooks = [
      () => {
        throw broken;
      },
      () => Promise.reject(broken),
    ];
    for (const hook of hooks) {
      const { client } = givenFastRetries({ [name]: hook }, networkFailure, success({ boards: [] }));
      expect(await client.boards.list.query()).toEqual({ boards: [] });
    }

    expect(printed.mock.calls).toContainEqual([`${name} threw an error:`, broken]);
    expect(printed).toHaveBeenCalledTimes(name === 'onRetry' ? 2 : 4);
  });
});

describe('further headers', () => {
  it('are those of the client and of the call, which comes first; undefined is not sent', async () => {
    const headers = { 'X-Gateway': 'one', 'x-both': 'client', 'x-none': undefined };
    const { client, header } = givenAnswers({ headers }, success({}), success({}));

    await client.boards.list.query();
    await client.boards.list.query(undefined, { headers: { 'X-Both': 'call' } });

    expect(header('x-gateway')).toEqual(['one', 'one']);
    expect(header('x-both')).toEqual(['client', 'call']);
    expect(header('x-none')).toEqual([null, null]);
  });

  it('may come from an async function, which is called before each request, the sign-in too', async () => {
    let calls = 0;
    const signIn = { email: 'a@example.test', password: 'a password' };
    const { client, header } = givenAnswers(
      { signIn, headers: async () => ({ 'x-gateway': String(++calls) }) },
      ...[success({ token: 'a token' }), success({}, {})],
    );

    await Promise.all([client.boards.list.query(), client.boards.list.query()]);

    expect(header('x-gateway')).toEqual(['1', '2']);
  });

  it('separate batches', async () => {
    const { client, called } = givenAnswers({}, success({}, {}), success({}));
    const list = (value: string) => client.boards.list.query(undefined, { headers: { 'x-tenant': value } });

    await Promise.all([list('a'), list('b'), list('a')]);

    expect(called()).toEqual(['boards.list,boards.list', 'boards.list']);
  });

  it.each([
    ['Authorization', 'Basic secret', "headers can't have authorization: use token, signIn or identityToken."],
    ['Idempotency-Key', 'secret', "headers can't have idempotency-key: use idempotencyKey."],
    ['x-project-id', '7', "headers can't have x-project-id: use projectId."],
    ['X-Request-Id', 'secret', "headers can't have x-request-id: the client sets it."],
    ['x-gateway', 'secret\nsecret', 'headers: x-gateway must be text of printable ASCII characters.'],
    ['x-gateway', 7, 'headers: x-gateway must be text of printable ASCII characters.'],
    ['no name', 'secret', 'headers has an invalid name.'],
  ])('throw for %s: %j, without the value and without a request', async (name, value, message) => {
    const headers = { [name]: value } as Record<string, string>;
    const { client, called } = givenAnswers({});
    const later = givenAnswers({ headers: () => headers });

    expect(() => givenAnswers({ headers })).toThrow(new DeckhandError(message));
    expect((await errorOf(client.boards.list.query(undefined, { headers }))).message).toBe(message);
    expect((await errorOf(later.client.boards.list.query())).message).toBe(message);
    expect([...called(), ...later.called()]).toEqual([]);
  });

  it.each([
    ['Headers', new Headers({ 'x-gateway': 'secret' })],
    ['a Map', new Map([['x-gateway', 'secret']])],
    ['a list', [['x-gateway', 'secret']]],
    ['null', null],
    ['text', 'x-gateway: secret'],
  ])('throw for %s, which is no plain object', async (_name, given) => {
    const headers = given as unknown as Record<string, string>;
    const { client, called } = givenAnswers({ headers: () => headers });
    const message = 'headers must be a plain object of names and values.';

    expect((await errorOf(client.boards.list.query())).message).toBe(message);
    expect((await errorOf(givenAnswers({}).client.boards.list.query(undefined, { headers }))).message).toBe(message);
    expect(called()).toEqual([]);
  });

  it('name the function that threw', async () => {
    const thrown = new Error('No session.');
    const { client } = givenAnswers({
      headers: () => {
        throw thrown;
      },
    });

    const error = await errorOf(client.boards.list.query());

    expect(error).toMatchObject({ message: 'headers threw an error: No session.', cause: thrown });
  });
});

describe('isDeckhandError', () => {
  it('knows errors of calls, also of another copy of the package, and nothing else', async () => {
    // A second copy of the module.
    const other: typeof import('../../client/errors.ts') = await import(`../../client/errors.ts?${'copy'}`);
    const foreign = new other.DeckhandError('Of another copy.');

    expect(other.DeckhandError).not.toBe(DeckhandError);
    expect(isDeckhandError(new DeckhandError('Own.'))).toBe(true);
    expect(foreign).not.toBeInstanceOf(DeckhandError);
    expect(isDeckhandError(foreign)).toBe(true);
    const data = { code: 'FORBIDDEN', httpStatus: 403, reason: 'role_missing' } as const;
    expect(isRefusal(new other.DeckhandError('Refused.', { data }))).toBe(true);
    for (const value of [undefined, null, 'DeckhandError', {}, new Error('A bug.'), { name: 'DeckhandError' }])
      expect(isDeckhandError(value)).toBe(false);
  });

  it('is not printed with the error', () => {
    expect(Object.keys(new DeckhandError(''))).not.toContain('Symbol');
    expect(Reflect.ownKeys(new DeckhandError('')).filter((key) => typeof key === 'symbol')).toEqual([]);
  });

  it('tells the procedures apart, also without a response', async () => {
    const { client } = givenAnswers({ retries: 0 }, refusal(403, { path: 'cards.create' }), networkFailure);

    const refused = await errorOf(client.cards.create.mutate({ title: 'A' }));
    const lost = await errorOf(client.boards.list.query());
    const invalid = await errorOf(client.cards.update.mutate({ id: 1, due_date: new Date('never') }));

    expect([refused, lost, invalid].map(({ procedure }) => procedure)).toEqual([
      ...['cards.create', 'boards.list', 'cards.update'],
    ]);
    expect(isDeckhandError(refused, 'cards.create')).toBe(true);
    expect(isDeckhandError(refused, 'boards.list')).toBe(false);
    expect(isDeckhandError(lost, 'boards.list')).toBe(true);
  });

  it('names the sign-in if the client could not sign in', async () => {
    const signIn = { email: 'a@example.test', password: 'wrong' };
    const { client } = givenAnswers({ signIn }, refusal(401, { reason: 'wrong_credentials' }));

    const error = await errorOf(client.boards.list.query());

    expect(isDeckhandError(error, 'auth.authenticate')).toBe(true);
    expect(isDeckhandError(error, 'boards.list')).toBe(false);
  });
});
