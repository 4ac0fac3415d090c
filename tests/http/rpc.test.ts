import { beforeAll, describe, expect, it } from 'vitest';
import { givenService, testService } from '../harness/service.ts';
import { givenBoard, givenWorld, type World } from '../harness/world.ts';

let url: string;
let world: World;
beforeAll(async () => {
  ({ url } = await testService());
  world = await givenWorld();
});

type Sent = { method?: string; body?: unknown; token?: string; headers?: Record<string, string>; at?: string };

/** As a member, unless told; text is sent as it is. */
async function call(path: string, { body, token = world.asMember.token, headers = {}, at = url, ...sent }: Sent = {}) {
  const isJson = body !== undefined && !(body instanceof FormData);
  const response = await fetch(`${at}/trpc/${path}`, {
    method: 'POST',
    ...sent,
    headers: {
      ...(isJson && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: isJson && typeof body !== 'string' ? JSON.stringify(body) : (body as string | FormData | undefined),
  });
  return { status: response.status, body: (await response.json()) as any, headers: response.headers };
}

const get = (path: string, sent: Sent = {}) => call(path, { method: 'GET', ...sent });

describe('an RPC call', () => {
  it.each<[string, number, Sent]>([
    ['no body', 400, {}],
    ['an empty body', 400, { body: '' }],
    ['no input', 400, { body: {} }],
    ['an empty object', 422, { body: { json: {} } }],
    ['undefined', 400, { body: { json: null, meta: { values: ['undefined'], v: 1 } } }],
  ])('200 with %s for a procedure without a required field, %i for another', async (_, status, sent) => {
    expect((await call('boards.list', sent)).status).toBe(200);
    expect((await call('tour.dismissAll', sent)).status).toBe(200);
    expect((await call('cards.create', sent)).status).toBe(status);
  });

  it.each(['GET', 'POST'])('404 for a %s without a procedure', async (method) => {
    const response = await fetch(`${url}/trpc`, { method });

    expect(response.status).toBe(404);
    expect(response.headers.get('allow')).toBeNull();
  });

  it.each([
    ['boards.list', 'GET, POST'],
    ['boards.list,tags.list?batch=1', 'GET, POST'],
    ['cards.create', 'POST'],
  ])('405 for other methods of %s', async (path, allowed) => {
    for (const method of ['PUT', 'DELETE', 'HEAD', 'OPTIONS']) {
      const response = await fetch(`${url}/trpc/${path}`, { method });
      expect(response.status, method).toBe(405);
      expect(response.headers.get('allow'), method).toBe(allowed);
    }
  });

  it.each([
    ['broken JSON', 'cards.create', '{', 400, 'The body is not valid JSON.'],
    [
      'an input that is not an object',
      'cards.create',
      { json: [1] },
      400,
      'The input must be an object, sent as {"json": {…}}.',
    ],
    ['no input', 'cards.create', {}, 400, 'The input must be an object, sent as {"json": {…}}.'],
    [
      'null',
      'cards.create',
      'null',
      400,
      'The input could not be read: it must be an object with "json" and, if needed, "meta". Send plain JSON.',
    ],
    [
      'a body nested too deeply',
      'cards.create',
      '['.repeat(100) + ']'.repeat(100),
      400,
      'The body is nested too deeply: at most 64 levels.',
    ],
    ['a wrong field', 'cards.create', { json: { title: 5 } }, 422, 'title must be text.'],
    ['an unknown procedure', 'cards.nothing', { json: {} }, 404, 'No procedure found on path "cards.nothing"'],
    ['a built-in property', 'constructor', { json: {} }, 404, 'No procedure found on path "constructor"'],
  ])('answers %s with the same status and message as REST', async (_, path, body, status, message) => {
    const answer = await call(path, { body });

    expect(answer.status).toBe(status);
    expect(answer.body.error.json).toMatchObject({ message, data: { httpStatus: status } });
    expect(JSON.stringify(answer.body)).not.toMatch(/stack|node_modules/);
  });

  it('400 for another content type, form data included', async () => {
    const form = new FormData();
    form.set('title', 'x');
    const answer = await call('cards.create', { body: form });

    expect(answer).toMatchObject({ status: 400, body: { error: { json: { data: { httpStatus: 400 } } } } });
  });

  it('401 and 403 before the input is parsed', async () => {
    expect((await call('cards.create', { body: '{', token: '' })).status).toBe(401);
    expect((await call('cards.create', { body: '{', token: world.asViewer.token })).status).toBe(403);
  });

  it('400 for a batch of more than 50 calls', async () => {
    expect((await call(`${Array(51).fill('boards.list').join(',')}?batch=1`, { body: {} })).status).toBe(400);
    expect((await call(`${Array(50).fill('boards.list').join(',')}?batch=1`, { body: {} })).status).toBe(200);
  });

  it('400 for a batch whose body is a list', async () => {
    const answer = await call('boards.list,boards.list?batch=1', { body: [{ json: {} }, { json: {} }] });

    expect(answer.status).toBe(400);
    expect(answer.body[0].error.json.message).toBe('The body of a batch must be an object.');
  });

  it('400 for a whole batch that mixes queries and mutations', async () => {
    const answer = await call('boards.list,cards.create?batch=1', { body: {} });

    expect(answer).toMatchObject({ status: 400, body: { error: { json: { data: { httpStatus: 400 } } } } });
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  });

  it('207 for a batch whose body can not be read, if a call is refused before; 400 for a batch of the others', async () => {
    const unreadable = { body: '{}', headers: { 'content-type': 'text/plain' } };

    const mixed = await call('users.list,boards.list?batch=1', unreadable);
    const others = await call('boards.list,boards.list?batch=1', unreadable);

    expect(mixed.status).toBe(207);
    expect(mixed.body.map(({ error }: any) => error.json.data.reason)).toEqual(['not_a_superadmin', 'body_not_json']);
    expect([others.status, others.body.error.json.data.reason]).toEqual([400, 'body_not_json']);
  });

  it('207 with one result for each call of a batch', async () => {
    const answer = await call('cards.create,cards.create?batch=1', {
      body: { 0: { json: { title: 'Fine' } }, 1: { json: { title: 5 } } },
    });

    expect(answer.status).toBe(207);
    expect(answer.body).toMatchObject([
      { result: { data: { json: { card: { title: 'Fine' } } } } },
      { error: { json: { data: { httpStatus: 422 } } } },
    ]);
  });
});

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

    const answer = await get('boards.list,boards.list,boards.list?batch=1&input={}', { at: limited.url });

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
    expect((await get('boards.get?input={', { token: 'forged' })).status).toBe(401);
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

const annotated = (annotation: unknown, value: unknown = 'x') => ({
  json: { email: value, password: 'x' },
  meta: { values: { email: annotation }, v: 1 },
});

describe('superjson annotations of an input', () => {
  it.each<[string, unknown]>([
    ['an array of 300 million bytes', annotated([['typed-array', 'Uint8Array']], { length: 300_000_000 })],
    ['a set', annotated(['set'], ['x'])],
    ['a map', annotated(['map'], [['x', 1]])],
    ['a bigint', annotated(['bigint'], '9'.repeat(500_000))],
    ['a regular expression', annotated(['regexp'], '/(a+)+$/')],
    ['a URL', annotated(['URL'], 'http://example.test/')],
    ['an error', annotated(['Error'], { name: 'Error', message: 'x' })],
    ['a symbol', annotated([['symbol', 'x']])],
    ['a class', annotated([['class', 'x']])],
    ['a custom type', annotated([['custom', 'x']])],
    ['NaN', annotated(['number'], 'NaN')],
    ['Infinity', annotated(['number'], 'Infinity')],
    ['minus zero', annotated(['number'], '-0')],
    ['a date that is a number', annotated(['Date'], 5)],
    ['a date of a megabyte', annotated(['Date'], 'x'.repeat(500_000))],
    ['an annotation within an annotation', annotated(['undefined', { x: ['undefined'] }])],
    ['a type that is not text', annotated([5])],
    ['no type', annotated([])],
    ['an annotation that is text', annotated('undefined')],
    ['an annotation that is null', annotated(null)],
    ['a field that does not exist', { json: { email: 'x' }, meta: { values: { 'email.x': ['undefined'] } } }],
    ['the length of a list', { json: { email: [] }, meta: { values: { 'email.length': ['undefined'] } } }],
    ['a prototype', { json: {}, meta: { values: { '__proto__.x': ['undefined'] } } }],
    ['a constructor', { json: {}, meta: { values: { 'constructor.prototype.x': ['undefined'] } } }],
    ['a path of a megabyte', { json: { a: {} }, meta: { values: { ['a.'.repeat(400_000)]: ['undefined'] } } }],
    ['equal references', { json: { email: 'x' }, meta: { referentialEqualities: { email: ['password'] } } }],
    ['an unknown version', { json: { email: 'x' }, meta: { values: {}, v: 2 } }],
    ['meta that is a list', { json: {}, meta: [] }],
    ['values that are text', { json: {}, meta: { values: 'x' } }],
  ])('400 for %s', async (_, body) => {
    const answer = await call('auth.authenticate', { body, token: '' });

    expect(answer.status).toBe(400);
    expect(answer.body.error.json).toMatchObject({
      message: expect.stringMatching(/^The input could not be read: .+ Send plain JSON\.$/),
      data: { httpStatus: 400 },
    });
  });

  it('accepts undefined for a field, as if it was not sent', async () => {
    const input = { json: { title: 'x', description: null }, meta: { values: { description: ['undefined'] }, v: 1 } };

    const { status, body } = await call('cards.create', { body: input });

    expect(status).toBe(200);
    expect(body.result.data.json.card.description).toBeNull();
  });

  it('422 for a date where the model expects text', async () => {
    const title = { json: { title: '2026-01-31T09:30:00.000Z' }, meta: { values: { title: ['Date'] } } };

    const { status, body } = await call('cards.create', { body: title });

    expect(status).toBe(422);
    expect(body.error.json.data.errors).toEqual({ title: ['title must be text.'] });
  });

  const due = (due_date: unknown) => ({ json: { title: 'x', due_date }, meta: { values: { due_date: ['Date'] } } });

  it.each(['0001-01-01T00:00:00.000Z', '2026-01-31T09:30:00.000Z', '9999-12-31T23:59:59.999Z'])(
    'accepts the date %s for due_date',
    async (date) => {
      const { status, body } = await call('cards.create', { body: due(date) });

      expect(status).toBe(200);
      expect(body.result.data.json.card.due_date).toBe(date);
    },
  );

  it.each(['nonsense', '', '+010000-01-01T00:00:00.000Z', '-000001-01-01T00:00:00.000Z'])(
    '422 for the date %j in due_date',
    async (date) => {
      const { status, body } = await call('cards.create', { body: due(date) });

      expect(status).toBe(422);
      expect(body.error.json.data.errors.due_date).toEqual([
        'due_date must be a date, or a date-time with an offset, such as 2026-01-31T09:30:00Z.',
      ]);
    },
  );

  it('400 also for a procedure without input, and only for that call of a batch', async () => {
    const [bad, good] = [{ json: {}, meta: { values: ['set'] } }, { json: {} }];

    const alone = await call('tour.dismissAll', { body: bad });
    const batch = await call('tags.list,tags.list?batch=1', { body: { 0: bad, 1: good } });

    expect(alone.status).toBe(400);
    expect(batch.status).toBe(207);
    expect(batch.body[0].error.json.data.httpStatus).toBe(400);
    expect(batch.body[1].result.data.json.tags).toEqual([]);
  });

  it('401 before annotations are parsed', async () => {
    expect((await call('cards.create', { body: annotated(['set']), token: '' })).status).toBe(401);
  });
});
