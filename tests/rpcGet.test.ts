import { beforeAll, describe, expect, it } from 'vitest';
import { givenService, testService } from './harness/service.ts';
import { givenBoard, givenWorld, type World } from './harness/world.ts';

let url: string;
let world: World;
beforeAll(async () => {
  ({ url } = await testService());
  world = await givenWorld();
});

async function get(path: string, token: string | undefined = world.asViewer.token, base = url) {
  const response = await fetch(`${base}/trpc/${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: (await response.json()) as any, headers: response.headers };
}

const inputOf = (input: unknown) => `input=${encodeURIComponent(JSON.stringify(input))}`;

describe('a query over GET', () => {
  it('200 without an input, with an empty one, and with one', async () => {
    const board = await givenBoard(world.project);

    const [none, empty, one] = [
      await get('boards.list'),
      await get('boards.list?input='),
      await get(`boards.get?${inputOf({ json: { id: board } })}`),
    ];

    expect(none.status).toBe(200);
    expect(none.headers.get('cache-control')).toBe('no-store');
    expect(empty.body).toEqual(none.body);
    expect(one.body.result.data.json.board.id).toBe(board);
  });

  it('207 for a batch with a result and a refusal', async () => {
    const answer = await get(`boards.list,boards.get?batch=1&${inputOf({ 1: { json: { id: 2_000_000_000 } } })}`);

    expect(answer.status).toBe(207);
    expect(answer.body).toMatchObject([
      { result: { data: { json: { boards: expect.any(Array) } } } },
      { error: { json: { data: { httpStatus: 404, path: 'boards.get' } } } },
    ]);
  });

  it('counts each call of a batch', async () => {
    const limited = await givenService({ RATE_LIMIT_PER_MINUTE: '10' });

    const answer = await get('boards.list,boards.list,boards.list?batch=1&input={}', undefined, limited.url);

    expect(answer.headers.get('x-ratelimit-remaining')).toBe('7');
  });

  it.each([
    ['broken JSON', 'input={', 'The input is not valid JSON.'],
    ['a bad percent-encoding', 'input=%zz', 'The input is not valid JSON.'],
    ['bytes that are not UTF-8', 'input=%ff%fe', 'The input is not valid JSON.'],
    ['an input that is sent twice', 'input={}&input={}', 'Send the parameter input once.'],
    ['an input nested too deeply', `input=${'['.repeat(500)}`, 'The input is nested too deeply: at most 64 levels.'],
    ['an input that is not an object', inputOf({ json: [1] }), 'The input must be an object, sent as {"json": {…}}.'],
    [
      'an annotation of another type',
      inputOf({ json: { id: 1 }, meta: { values: { id: ['set'] } } }),
      'The input could not be read: the type "set" is not accepted. Send plain JSON.',
    ],
    [
      'a prototype',
      `input=${encodeURIComponent('{"__proto__":{"json":{"id":1}}}')}`,
      'The input must be an object, sent as {"json": {…}}.',
    ],
  ])('400 for %s', async (_, query, message) => {
    const answer = await get(`boards.get?${query}`);

    expect(answer.status).toBe(400);
    expect(answer.body.error.json).toMatchObject({ message, data: { httpStatus: 400, code: 'BAD_REQUEST' } });
  });

  it.each(['', '&input=', '&input=[]', '&input=null', '&input="x"'])('400 for a batch with %j', async (input) => {
    const answer = await get(`boards.list,tags.list?batch=1${input}`);

    expect(answer.status).toBe(400);
    expect(answer.body[1].error.json.message).toBe('The input of a batch must be an object.');
  });

  it('401 before the input is parsed', async () => {
    expect((await get('boards.get?input={', 'forged')).status).toBe(401);
  });

  it('404 for an unknown procedure', async () => {
    expect((await get('boards.nothing')).status).toBe(404);
    expect((await get('constructor')).status).toBe(404);
  });

  it('400 for more than 50 calls', async () => {
    expect((await get(`${Array(51).fill('tags.list').join()}?batch=1&input={}`)).status).toBe(400);
  });
});

describe('a mutation over GET', () => {
  it.each(['cards.create', 'cards.create,cards.create?batch=1', 'auth.authenticate'])('405: %s', async (path) => {
    const answer = await get(path);

    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('POST');
    expect(answer.body.error.json).toMatchObject({
      message: 'GET is not allowed here: a query is a GET or a POST, a mutation a POST.',
      data: { code: 'METHOD_NOT_SUPPORTED', httpStatus: 405 },
    });
  });

  it('400 in a batch with queries, as over POST', async () => {
    const answer = await get('boards.list,cards.create?batch=1&input={}');

    expect(answer.status).toBe(400);
    expect(answer.body.error.json.message).toBe('A batch has either queries or mutations, not both.');
  });
});
