import { format } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { DeckhandError } from '../../client/client.ts';
import { broken, errorOf, givenAnswers, givenFastRetries, page, refusal, success } from '../harness/client.ts';
import { fakeTimers } from '../harness/timers.ts';

const WARNING = " The call may have been executed: repeat it with the error's idempotencyKey to get its response.";
const SIGN_IN = { email: 'a@example.test', password: 'a password' };
const silence = () => new Promise<Response>(() => undefined);

describe('the project of a call', () => {
  it('is that of the client, of `as`, or of the call', async () => {
    const { client, header } = givenAnswers({ projectId: 1 }, ...Array(5).fill(success({ boards: [] })));
    const inTwo = client.as({ projectId: 2 });

    await client.boards.list.query();
    await inTwo.boards.list.query();
    await inTwo.as({ timeoutMilliseconds: 1000 }).boards.list.query();
    await inTwo.boards.list.query(undefined, { projectId: 3 });
    await inTwo.boards.list.query(undefined, { projectId: undefined });

    expect(header('x-project-id')).toEqual(['1', '2', '2', '3', '2']);
  });

  it('separates batches, but not who is signed in', async () => {
    const { client, called, header } = givenAnswers(
      { signIn: SIGN_IN },
      ...[success({ token: 'a token' }), success({}, {}), success({}), success({})],
    );
    const clients = [1, 2, 1].map((projectId) => client.as({ projectId }));

    await Promise.all(clients.map(({ boards }) => boards.list.query()));
    await client.boards.list.query();

    expect(called()).toEqual(['auth.authenticate', 'boards.list,boards.list', 'boards.list', 'boards.list']);
    expect(header('x-project-id')).toEqual([null, '1', '2', null]);
    expect(header('authorization')).toEqual([null, ...Array(3).fill('Bearer a token')]);
  });
});

describe('a time-out', () => {
  it.each([
    ['a query', 'No response within 5000 ms.', 'query'],
    ['a mutation', `No response within 5000 ms.${WARNING}`, 'mutation'],
  ])('ends %s', async (_, message, kind) => {
    fakeTimers('performance');
    const { client } = givenAnswers({}, silence);
    const options = { timeoutMilliseconds: 5000 };

    const thrown = errorOf(
      kind === 'query' ? client.tags.list.query({}, options) : client.tags.create.mutate({ name: 'A' }, options),
    );
    await vi.advanceTimersByTimeAsync(4999);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);

    expect(await thrown).toMatchObject({ message, status: undefined });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('of the client includes retries, and leaves no timer behind', async () => {
    fakeTimers('performance');
    const { client, called } = givenAnswers({ timeoutMilliseconds: 3000 }, refusal(429, { retryAfterSeconds: 9 }));

    const thrown = errorOf(client.boards.list.query());
    await vi.advanceTimersByTimeAsync(3000);

    expect((await thrown).message).toBe('No response within 3000 ms.');
    expect(called()).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('says nothing of execution while the client still signs in', async () => {
    const { client } = givenAnswers({ signIn: SIGN_IN, timeoutMilliseconds: 1 }, silence);

    expect((await errorOf(client.tags.create.mutate({ name: 'A' }))).message).toBe('No response within 1 ms.');
  });

  it.each([0, -1, Number.NaN, 2 ** 31])('throws without a call if it is %d', async (timeoutMilliseconds) => {
    const { client, called } = givenAnswers({});

    const error = await errorOf(client.boards.list.query(undefined, { timeoutMilliseconds }));

    expect(error.message).toBe('timeoutMilliseconds must be from 1 to 2147483647.');
    expect(called()).toEqual([]);
  });
});

describe('a token', () => {
  it('may be an async function, which is called before each request', async () => {
    const token = vi.fn<() => Promise<string>>().mockResolvedValueOnce('first').mockResolvedValueOnce('second');
    const { client, header } = givenAnswers({ token }, success({}, {}), success({}));

    await Promise.all([client.boards.list.query(), client.boards.list.query()]);
    await client.boards.list.query();

    expect(header('authorization')).toEqual(['Bearer first', 'Bearer second']);
  });

  it('may be missing, and then the client signs in', async () => {
    const options = { token: async () => undefined, signIn: SIGN_IN };
    const { client, header } = givenAnswers(options, success({ token: 'a token' }), success({}));

    await client.boards.list.query();

    expect(header('authorization')).toEqual([null, 'Bearer a token']);
  });

  it('may end with the newline of a file', async () => {
    const { client, header } = givenAnswers({ token: 'from-a-file\n' }, success({}));

    await client.boards.list.query();

    expect(header('authorization')).toEqual(['Bearer from-a-file']);
  });

  it.each(['secret\nsecret', '\nsecret', 'secret…'])(
    'that no header can have is not sent or shown: %j',
    async (token) => {
      const { client, called } = givenAnswers({ token });

      const error = await errorOf(client.boards.list.query());

      expect(error.message).toBe('token must have only printable ASCII characters.');
      expect(format(error)).not.toContain(token);
      expect(called()).toEqual([]);
    },
  );
});

describe('each', () => {
  const PAGES = [
    success({ tags: [{ id: 1 }, { id: 2 }], next_cursor: 'two' }),
    success({ tags: [], next_cursor: 'three' }),
  ];

  it('reads all pages, even after an empty one', async () => {
    const { client, sent } = givenAnswers({}, ...PAGES, success({ tags: [{ id: 3 }], next_cursor: null }));

    const rows = await allOf(client.tags.list.each({ limit: 2 }));

    expect(rows).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
    expect(sent()).toEqual([{ limit: 2 }, { limit: 2, cursor: 'two' }, { limit: 2, cursor: 'three' }]);
  });

  it('reads no page that is not needed', async () => {
    const { client, called } = givenAnswers({}, ...PAGES);

    for await (const { id } of client.tags.list.each()) if (id === 2) break;

    expect(called()).toEqual(['tags.list']);
  });

  it('reads page by page, and goes on at a stored cursor', async () => {
    const last = { tags: [{ id: 3 }], next_cursor: null };
    const { client, sent } = givenAnswers({}, ...PAGES, success(last));
    let cursor: string | null = null;

    for await (const { tags, next_cursor } of client.tags.list.each({ limit: 2 }).pages()) {
      cursor = next_cursor;
      if (tags.length === 0) break;
    }
    const pages = await allOf(client.tags.list.each({ limit: 2, cursor }).pages());

    expect(cursor).toBe('three');
    expect(pages).toEqual([last]);
    expect(sent()).toEqual([{ limit: 2 }, { limit: 2, cursor: 'two' }, { limit: 2, cursor: 'three' }]);
  });

  it('sends nothing for rows while pages are read', async () => {
    const { client, called } = givenAnswers({}, success({ tags: [], next_cursor: null }));

    await allOf(client.tags.list.each().pages());

    expect(called()).toEqual(['tags.list']);
  });

  it('has the options of a call, and throws the error of a page', async () => {
    const { client, header } = givenAnswers({}, PAGES[0]!, refusal(403));

    expect((await errorOf(allOf(client.tags.list.each({}, { projectId: 7 })))).status).toBe(403);
    expect(header('x-project-id')).toEqual(['7', '7']);
  });
});

describe('an error', () => {
  it('has the stack of the line that made the call, even if another call of the batch failed with it', async () => {
    const { client } = givenAnswers({ retries: 0 }, page(500));
    async function first() {
      return errorOf(client.boards.list.query());
    }
    async function second() {
      return errorOf(client.boards.list.query());
    }

    const [one, two] = await Promise.all([first(), second()]);

    expect(one.stack!.split('\n').slice(0, 2)).toEqual([
      expect.stringMatching(/^DeckhandError: The response with status 500/),
      expect.stringMatching(/^ +at first .*client\/options\.test\.ts/),
    ]);
    expect(two.stack).toMatch(/\n +at second /);
    expect(one).toBeInstanceOf(DeckhandError);
    expect(Object.keys(one)).toEqual(Object.keys(new DeckhandError('')));
  });

  it('has the id of the request that the service was sent, or that of its answer', async () => {
    const lost = givenAnswers({ retries: 0 }, broken('ECONNRESET'));
    const { requestId } = await errorOf(lost.client.boards.list.query());
    expect(requestId).toMatch(/^[\da-f]{32}$/);
    expect(lost.header('x-request-id')).toEqual([requestId]);

    const answered = givenAnswers({}, page(403, { 'x-request-id': 'of-the-proxy' }));
    expect((await errorOf(answered.client.boards.list.query())).requestId).toBe('of-the-proxy');
  });

  it.each([
    ['ECONNRESET', WARNING],
    ['ECONNREFUSED', ''],
  ])('of a mutation says whether it may have been executed (%s)', async (code, warning) => {
    const { client, keys } = givenAnswers({ retries: 0 }, broken(code));

    const error = await errorOf(client.tags.create.mutate({ name: 'A' }));

    expect(error.message).toMatch(/Check the url, and that the service runs\./);
    expect(error.message.endsWith(` runs.${warning}`)).toBe(true);
    expect(keys()).toEqual([error.idempotencyKey]);
  });

  it('of a mutation says so even if only its first attempt had a connection', async () => {
    const { client } = givenFastRetries({ retries: 1 }, broken('ECONNRESET'), broken('ECONNREFUSED'));

    expect((await errorOf(client.tags.create.mutate({ name: 'A' }))).message.endsWith(WARNING)).toBe(true);
  });

  it('of a proxy says so if its status does not exclude it', async () => {
    const { client } = givenAnswers({ retries: 0 }, page(502), page(403));

    expect((await errorOf(client.tags.create.mutate({ name: 'A' }))).message).toMatch(WARNING);
    expect((await errorOf(client.tags.create.mutate({ name: 'A' }))).message).not.toMatch(WARNING);
  });

  it('of a refused call has no cause, which would only be printed', async () => {
    const { client } = givenAnswers({}, refusal(403));

    expect('cause' in (await errorOf(client.boards.list.query()))).toBe(false);
  });
});

async function allOf<Row>(rows: AsyncIterable<Row>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const row of rows) all.push(row);
  return all;
}
