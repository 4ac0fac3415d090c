import { beforeAll, describe, expect, it } from 'vitest';
import { testService } from './harness/service.ts';
import { givenWorld, type World } from './harness/world.ts';

let url: string;
let world: World;
beforeAll(async () => {
  ({ url } = await testService());
  world = await givenWorld();
});

async function call(path: string, body: unknown, token?: string) {
  const response = await fetch(`${url}/trpc/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as any };
}

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
    const answer = await call('auth.authenticate', body);

    expect(answer.status).toBe(400);
    expect(answer.body.error.json).toMatchObject({
      message: expect.stringMatching(/^The input could not be read: .+ Send plain JSON\.$/),
      data: { httpStatus: 400 },
    });
  });

  it('accepts undefined for a field, as if it was not sent', async () => {
    const input = { json: { title: 'x', description: null }, meta: { values: { description: ['undefined'] }, v: 1 } };

    const { status, body } = await call('cards.create', input, world.asMember.token);

    expect(status).toBe(200);
    expect(body.result.data.json.card.description).toBeNull();
  });

  it('accepts undefined for the whole input', async () => {
    const answer = await call(
      'boards.list',
      { json: null, meta: { values: ['undefined'], v: 1 } },
      world.asMember.token,
    );

    expect(answer.status).toBe(200);
  });

  it('422 for a date where the model expects text', async () => {
    const title = { json: { title: '2026-01-31T09:30:00.000Z' }, meta: { values: { title: ['Date'] } } };

    const { status, body } = await call('cards.create', title, world.asMember.token);

    expect(status).toBe(422);
    expect(body.error.json.data.errors).toEqual({ title: ['title must be text.'] });
  });

  const due = (due_date: unknown) => ({ json: { title: 'x', due_date }, meta: { values: { due_date: ['Date'] } } });

  it.each(['0001-01-01T00:00:00.000Z', '2026-01-31T09:30:00.000Z', '9999-12-31T23:59:59.999Z'])(
    'accepts the date %s for due_date',
    async (date) => {
      const { status, body } = await call('cards.create', due(date), world.asMember.token);

      expect(status).toBe(200);
      expect(body.result.data.json.card.due_date).toBe(date);
    },
  );

  it.each(['nonsense', '', '+010000-01-01T00:00:00.000Z', '-000001-01-01T00:00:00.000Z'])(
    '422 for the date %j in due_date',
    async (date) => {
      const { status, body } = await call('cards.create', due(date), world.asMember.token);

      expect(status).toBe(422);
      expect(body.error.json.data.errors.due_date).toEqual([
        'due_date must be a date, or a date-time with an offset, such as 2026-01-31T09:30:00Z.',
      ]);
    },
  );

  it('400 also for a procedure without input, and only for that call of a batch', async () => {
    const [bad, good] = [{ json: {}, meta: { values: ['set'] } }, { json: {} }];

    const alone = await call('tour.dismissAll', bad, world.asViewer.token);
    const batch = await call('tags.list,tags.list?batch=1', { 0: bad, 1: good }, world.asViewer.token);

    expect(alone.status).toBe(400);
    expect(batch.status).toBe(207);
    expect(batch.body[0].error.json.data.httpStatus).toBe(400);
    expect(batch.body[1].result.data.json.tags).toEqual([]);
  });

  it('401 before annotations are parsed', async () => {
    expect((await call('cards.create', annotated(['set']))).status).toBe(401);
  });
});
