import { describe, expect, it } from 'vitest';
import { type Client, createClient, DeckhandError } from '../../client/client.ts';
import { errorOf, givenAnswers, success } from '../harness/client.ts';

const INVALID = new Date('2026-02-31T99:00:00Z');

describe('an input', () => {
  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['due_date', (client) => client.cards.update.mutate({ id: 1, due_date: INVALID })],
    ['due_before', (client) => client.cards.list.query({ due_before: INVALID } as object)],
    [
      'groups.0.position',
      (client) => client.groups.reorder.mutate({ groups: [{ id: 1, position: INVALID as never }] }),
    ],
    [
      'due_date',
      (client) => client.cards.update.mutate(Object.assign(Object.create({}), { id: 1, due_date: INVALID })),
    ],
  ])('with an invalid Date throws before it is sent, and names the field: %s', async (field, call) => {
    const { client, called } = givenAnswers({});

    const error = await errorOf(call(client));

    expect(error).toMatchObject({ status: undefined, requestId: undefined });
    expect(error.message).toBe(`${field} can't be sent: it is an invalid Date.`);
    expect(error.stack).toContain('client/input.test.ts');
    expect(called()).toEqual([]);
  });

  const circle: Record<string, unknown> = {};
  circle.group = circle;

  it.each([
    [{ toJSON: () => null }, "due_date can't be sent: it is null as JSON."],
    [Number.NaN, "due_date can't be sent: it is NaN."],
    [Number.POSITIVE_INFINITY, "due_date can't be sent: it is Infinity."],
    [new Map([['a', 1]]), "due_date can't be sent: it is a Map."],
    [new Set([1]), "due_date can't be sent: it is a Set."],
    [Promise.resolve('2026-01-31'), "due_date can't be sent: it is a Promise."],
    [1n, "The input can't be sent as JSON: Do not know how to serialize a BigInt"],
    [circle, "The input can't be sent as JSON: Converting circular structure"],
  ])('that JSON would change throws before it is sent: %o', async (value, message) => {
    const { client, called } = givenAnswers({});

    const error = await errorOf(client.cards.update.mutate({ id: 1, due_date: value as never }));

    expect(error.message.startsWith(message)).toBe(true);
    expect(called()).toEqual([]);
  });

  it('is sent as it was when the call was made, also the same object twice', async () => {
    const { client, sent } = givenAnswers({}, success({}), success({}));
    const due = new Date('2026-01-31T09:30:00Z');
    const input = { id: 1, due_date: due, title: undefined, description: null };
    const group = { id: 1, position: 1 };

    const answer = client.cards.update.mutate(input as never);
    input.id = 2;
    await answer;
    await client.groups.reorder.mutate({ groups: [group, group] });

    expect(sent()).toEqual([
      { id: 1, due_date: '2026-01-31T09:30:00.000Z', description: null },
      { groups: [group, group] },
    ]);
  });
});

describe('createClient', () => {
  const url = 'http://127.0.0.1:3000';
  const ADDRESS = 'url must be the address of the service, such as http://127.0.0.1:3000.';
  const SIGN_IN = 'signIn must be an object with email and password, and perhaps a code.';

  it.each<[unknown, string]>([
    [undefined, ADDRESS],
    [{ token: 'a token' }, ADDRESS],
    ...['', '127.0.0.1:3000', 'localhost:3000', 'ftp://127.0.0.1', 3000].map((url): [unknown, string] => [
      { url },
      ADDRESS,
    ]),
    ...[7, null].map((token): [unknown, string] => [{ url, token }, 'token must be text or a function.']),
    ...['me', { email: 'a@b.test' }, { email: 'a@b.test', password: 'secret', code: 123456 }].map(
      (signIn): [unknown, string] => [{ url, signIn }, SIGN_IN],
    ),
    [{ url, onSignIn: {} }, 'onSignIn must be a function.'],
    [{ url, projectId: '2' }, 'projectId must be a whole number from 1 on.'],
    [{ url, projectId: 0 }, 'projectId must be a whole number from 1 on.'],
    [{ url, timeoutMilliseconds: '5s' }, 'timeoutMilliseconds must be from 1 to 2147483647.'],
    [{ url, retries: -1 }, 'retries must be a whole number from 0 on.'],
    [{ url, retries: true }, 'retries must be a whole number from 0 on.'],
    [{ url, maxInFlight: 0 }, 'maxInFlight must be a whole number from 1 on.'],
    [{ url, maxInFlight: 1.5 }, 'maxInFlight must be a whole number from 1 on.'],
    [{ url, traceparent: '00-' }, 'traceparent must be a function.'],
    [{ url, fetch: 'fetch' }, 'fetch must be a function.'],
    [{ url, headers: 'x-a: b' }, 'headers must be an object or a function.'],
    [{ url, onRequest: {} }, 'onRequest must be a function.'],
    [{ url, onResponse: 7 }, 'onResponse must be a function.'],
    [{ url, onRetry: null }, 'onRetry must be a function.'],
    [{ url, warn: true }, 'warn must be a function or false.'],
    ...['', ' \n'].map((token): [unknown, string] => [
      { url, token },
      'token is empty: pass a token or an API key, or leave it out.',
    ]),
  ])('throws with the options %o', (options, message) => {
    expect(() => createClient(options as never)).toThrow(new DeckhandError(message));
  });

  it('takes each option', () => {
    const signIn = { email: 'a@example.test', password: 'secret', code: () => '123456', is_recovery: false };
    const hooks = { onRequest: () => undefined, onResponse: () => undefined, onRetry: () => undefined };
    const traced = { traceparent: () => undefined, fetch, headers: { 'x-gateway': 'one' }, ...hooks };
    const numbers = { projectId: 2, timeoutMilliseconds: 2 ** 31 - 1, retries: 0, maxInFlight: 1 };

    expect(() => createClient({ url, token: 'a token', signIn, onSignIn: () => undefined })).not.toThrow();
    expect(() =>
      createClient({ url: 'https://example.test/', token: async () => '', ...traced, ...numbers }),
    ).not.toThrow();
  });

  it('throws if a procedure is called without query, mutate or each', () => {
    const { client, called } = givenAnswers({});
    const create = client.cards.create as unknown as (input: object) => void;

    expect(() => create({ title: 'A' })).toThrow(
      "client.cards.create can't be called: a procedure has query or each if it reads, mutate if it changes something.",
    );
    expect(called()).toEqual([]);
  });
});
