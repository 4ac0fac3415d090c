import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { restProcedures } from '../server/procedures.ts';
import { document } from './harness/document.ts';
import { testService } from './harness/service.ts';
import { givenWorld, type World } from './harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';
const LIST = '/services/operations/v1/operations/boards/list';

let url: string;
let world: World;
beforeAll(async () => {
  url = (await testService()).url;
  world = await givenWorld();
});

const protectedPaths = () => restProcedures.filter(({ access }) => access !== 'anyone').map(({ rest }) => rest.path);

describe('every answer under /api and /trpc', () => {
  it('carries the rate limit and a request id', async () => {
    const addresses = [
      '/api',
      '/api/',
      '/api/nothing',
      `/api${CREATE}`,
      '/api/%zz',
      '/trpc',
      '/trpc/boards.list',
      '/trpc/nothing',
      '/trpc/%zz',
      '/trpc/a/b',
    ];

    for (const path of addresses) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
        const { status, headers } = await fetch(url + path, { method });
        expect(status, `${method} ${path}`).toBeGreaterThanOrEqual(400);
        expect(headers.get('x-ratelimit-limit'), `${method} ${path}`).toBe('1000000');
        expect(headers.get('x-ratelimit-remaining'), `${method} ${path}`).toMatch(/^\d+$/);
        expect(headers.get('x-request-id'), `${method} ${path}`).toMatch(/^[0-9a-f-]{36}$/);
        expect(headers.get('cache-control'), `${method} ${path}`).toBe('no-store');
      }
    }
  });

  it('is named as its caller named it, if the name is harmless, and so is its line in the log', async () => {
    const { logged } = await testService();

    const named = await world.asViewer.post(LIST, undefined, { 'x-request-id': 'trace-1.a:b' });
    const renamed = await world.asViewer.post(LIST, undefined, { 'x-request-id': 'evil\tname"' });

    expect(named.headers.get('x-request-id')).toBe('trace-1.a:b');
    expect(renamed.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(logged.find(({ reqId }) => reqId === 'trace-1.a:b')).toMatchObject({
      surface: 'rest',
      operation: 'boards.list',
      status: 200,
      user: world.users.viewer.id,
    });
  });

  it('leaves what stands in its address out of the log', async () => {
    const { url, logged } = await testService();
    const before = logged.length;

    for (const path of ['/trpc/auth.authenticate?input=hush', '/api/v1/authenticate?password=hush', '/?hush']) {
      await fetch(url + path);
    }

    const lines = () => logged.slice(before);
    await expect
      .poll(() => lines().map(({ path }) => path))
      .toEqual(['/trpc/auth.authenticate', '/api/v1/authenticate', '/']);
    expect(JSON.stringify(lines())).not.toContain('hush');
  });
});

describe('REST paths', () => {
  it('404 for an unknown path, whatever is sent there', async () => {
    const body = { error: true, message: 'There is no such path.', data: [] };

    for (const path of ['/nothing', `${CREATE}/`, CREATE.toUpperCase(), '', '/']) {
      const answer = await world.asMember.post(path, '{');
      expect(answer.status, path).toBe(404);
      expect(answer.body).toEqual(body);
    }
  });

  it('405 with Allow for another method, on every path', async () => {
    for (const { rest } of restProcedures) {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const response = await fetch(`${url}/api${rest.path}`, { method });
        expect(response.status, `${method} ${rest.path}`).toBe(405);
        expect(response.headers.get('allow')).toBe('POST');
        expect(await response.json()).toEqual({
          error: true,
          message: `${method} is not possible here: every operation is a POST.`,
          data: [],
        });
      }
    }
  });

  it('401 before the body is looked at, on every path that needs a token', async () => {
    for (const path of protectedPaths()) {
      const answer = await world.asNobody.post(path, '{');
      expect(answer.status, path).toBe(401);
      const error = path.endsWith('/upgrade-trial') ? {} : { error: true };
      expect(answer.body).toEqual({ ...error, message: expect.any(String) });
    }
  });

  it('403 before the body is looked at', async () => {
    expect(await world.asViewer.post(CREATE, '{')).toMatchObject({ status: 403 });
  });
});

describe('REST bodies', () => {
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

  it('takes a body of 1 MiB', async () => {
    const around = '{"title": "x", "ignored": ""}';
    const ignored = 'd'.repeat(1024 * 1024 - around.length);

    const answer = await world.asMember.post(CREATE, around.replace('""', `"${ignored}"`));

    expect(answer.status).toBe(201);
  });

  it.each([
    ['broken JSON', '{"title": "x"', 'The body is not valid JSON.'],
    ['no JSON at all', 'title=x', 'The body is not valid JSON.'],
    ['an array', '[{"title": "x"}]', 'The body must be a JSON object.'],
    ['null', 'null', 'The body must be a JSON object.'],
    ['a text', '"title"', 'The body must be a JSON object.'],
    ['a number', '5', 'The body must be a JSON object.'],
    ['65 levels', `{"title": "x", "more": ${nested(64)}}`, 'The body is nested too deeply: at most 64 levels.'],
    [
      '30,001 fields',
      `{${Array.from({ length: 30_001 }, (_, field) => `"f${field}":0`).join()}}`,
      'The body has too many fields: at most 30000.',
    ],
    ['half a million levels', nested(500_000), 'The body is nested too deeply: at most 64 levels.'],
    [
      'more than 1 MiB',
      `{"title": "x", "description": "${'d'.repeat(1024 * 1024)}"}`,
      'The body is too large: at most 1 MiB.',
    ],
    ['nothing', '', 'Send a JSON object as the body, with Content-Type application/json.'],
  ])('400 for %s', async (_, body, message) => {
    const answer = await world.asMember.post(CREATE, body, { 'content-type': 'application/json' });

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: true, message, data: [] });
    expect(answer.headers.get('x-ratelimit-limit')).toBe('1000000');
  });

  it('400 for text that is not UTF-8', async () => {
    const response = await fetch(`${url}/api${CREATE}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${world.asMember.token}` },
      body: Buffer.concat([Buffer.from('{"title": "'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
    });

    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: true, message: 'The body is not valid UTF-8.', data: [] });
  });

  it('takes 64 levels, and brackets in texts are none', async () => {
    const deep = `{"title": "x", "more": ${nested(63)}}`;
    const bracketed = JSON.stringify({ title: `${'['.repeat(100)}"\\{` });

    expect((await world.asMember.post(CREATE, deep)).status).toBe(201);
    expect((await world.asMember.post(CREATE, bracketed)).status).toBe(201);
  });

  it('takes JSON with parameters of its type, in any case', async () => {
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset=UTF-8']) {
      expect((await world.asMember.post(CREATE, '{"title": "x"}', { 'content-type': type })).status, type).toBe(201);
    }
  });

  it('400 for another type', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonp',
      'nonsense',
    ]) {
      const answer = await world.asMember.post(CREATE, '{"title": "x"}', { 'content-type': type });
      expect(answer.status, type).toBe(400);
      expect(answer.body).toEqual({
        error: true,
        message: 'Send the body as Content-Type application/json.',
        data: [],
      });
    }
  });

  it('400 without a type where a body is needed', async () => {
    const { status } = await fetch(`${url}/api${CREATE}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${world.asMember.token}` },
      // Bytes have no type of their own, unlike text.
      body: Buffer.from('{"title": "x"}'),
    });

    expect(status).toBe(400);
  });

  it('ignores fields that it does not know, even odd ones', async () => {
    const answer = await world.asMember.post(
      CREATE,
      '{"title": "x", "__proto__": {"title": 5}, "constructor": 1, "toString": null, "project_id": 1}',
    );

    expect(answer).toMatchObject({ status: 201, body: { data: { card: { project_id: world.project.id } } } });
  });

  it('survives a request that is cut off', async () => {
    await new Promise<void>((resolve) => {
      const socket = connectSocket(Number(new URL(url).port), '127.0.0.1', () => {
        socket.write(
          `POST /api${CREATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"tit`,
        );
        socket.destroy();
        resolve();
      });
    });

    expect((await world.asViewer.post(LIST)).status).toBe(200);
  });
});

it('answers a request that expects what nobody knows like any other', async () => {
  const [response] = (await once(
    request(`${url}/api${LIST}`, { method: 'POST', headers: { expect: 'a miracle' } }).end(),
    'response',
  )) as [IncomingMessage];

  expect(response.statusCode).toBe(401);
  expect(response.headers).toHaveProperty('x-ratelimit-limit');
});

it('closes the connection after a request for another protocol: what follows on it would get no answer', async () => {
  const { hostname, port } = new URL(url);
  const socket = connectSocket(Number(port), hostname);
  const upgrade = `POST /api${LIST} HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n`;

  socket.write(upgrade);
  const answer = await text(socket);

  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  expect(answer).toMatch(/^connection: close\r$/im);
});

describe('the RPC surface', () => {
  const call = async (path: string, body: unknown, more: RequestInit = {}) => {
    const response = await fetch(`${url}/trpc/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${world.asMember.token}` },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...more,
    });
    return { status: response.status, body: (await response.json()) as any, headers: response.headers };
  };

  it('405 for GET, so that no input stands in a URL', async () => {
    const response = await fetch(`${url}/trpc/boards.list`, {
      headers: { authorization: `Bearer ${world.asMember.token}` },
    });

    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
    expect(await response.json()).toMatchObject({ error: { json: { data: { httpStatus: 405 } } } });
  });

  it('404 for a POST to no procedure at all', async () => {
    const response = await fetch(`${url}/trpc`, { method: 'POST' });

    expect(response.status).toBe(404);
    expect(response.headers.get('allow')).toBeNull();
  });

  it.each([
    ['broken JSON', 'cards.create', '{', 400, 'The body is not valid JSON.'],
    ['an input that is no object', 'cards.create', { json: [1] }, 400, 'The input must be an object.'],
    ['no input', 'cards.create', {}, 400, 'The input must be an object.'],
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
    ['an odd procedure', 'constructor', { json: {} }, 404, 'No procedure found on path "constructor"'],
  ])('tells of %s as REST would', async (_, path, body, status, message) => {
    const answer = await call(path, body);

    expect(answer.status).toBe(status);
    expect(answer.body.error.json).toMatchObject({ message, data: { httpStatus: status } });
    expect(JSON.stringify(answer.body)).not.toMatch(/stack|node_modules/);
  });

  it('400 for another content type, form data included', async () => {
    const form = new FormData();
    form.set('title', 'x');
    const answer = await call('cards.create', '', {
      body: form,
      headers: { authorization: `Bearer ${world.asMember.token}` },
    });

    expect(answer).toMatchObject({ status: 400, body: { error: { json: { data: { httpStatus: 400 } } } } });
  });

  it('401 and 403 before the input is looked at', async () => {
    const asViewer = { 'content-type': 'application/json', authorization: `Bearer ${world.asViewer.token}` };

    expect((await call('cards.create', '{', { headers: { 'content-type': 'application/json' } })).status).toBe(401);
    expect((await call('cards.create', '{', { headers: asViewer })).status).toBe(403);
  });

  it('400 for a batch of more than 50', async () => {
    expect((await call(`${Array(51).fill('boards.list').join(',')}?batch=1`, {})).status).toBe(400);
    expect((await call(`${Array(50).fill('boards.list').join(',')}?batch=1`, {})).status).toBe(200);
  });

  it('400 for a batch whose body is a list', async () => {
    const answer = await call('boards.list,boards.list?batch=1', [{ json: {} }, { json: {} }]);

    expect(answer.status).toBe(400);
    expect(answer.body[0].error.json.message).toBe('The body of a batch must be an object.');
  });

  it('400 as JSON for a batch of queries and mutations, which is refused as a whole', async () => {
    const answer = await call('boards.list,cards.create?batch=1', {});

    expect(answer).toMatchObject({ status: 400, body: { error: { json: { data: { httpStatus: 400 } } } } });
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  });

  it.each(['trpc-accept', 'accept'])(
    'streams no answer, whatever %s asks for: its status would always be 200',
    async (name) => {
      const headers = { 'content-type': 'application/json', [name]: 'application/jsonl' };

      const answer = await call('boards.list,boards.list?batch=1', {}, { headers });

      expect(answer.status).toBe(401);
      expect(answer.body).toHaveLength(2);
    },
  );

  it('answers a batch call by call', async () => {
    const answer = await call('cards.create,cards.create?batch=1', {
      0: { json: { title: 'Fine' } },
      1: { json: { title: 5 } },
    });

    expect(answer.status).toBe(207);
    expect(answer.body).toMatchObject([
      { result: { data: { json: { card: { title: 'Fine' } } } } },
      { error: { json: { data: { httpStatus: 422 } } } },
    ]);
  });
});

describe('beside the surfaces', () => {
  it('404 for a checkout with a name of any length', async () => {
    const response = await fetch(`${url}/checkout/${'%25'.repeat(4000)}`);

    expect(response.status).toBe(404);
    expect(response.headers.get('x-request-id')).not.toBeNull();
  });

  it('serves the very document that answers are checked against', async () => {
    expect(await (await fetch(`${url}/openapi.json`)).json()).toEqual(JSON.parse(JSON.stringify(document)));
  });

  it('serves health, the document and the pages', async () => {
    const expected: Record<string, RegExp> = {
      '/health/live': /"live"/,
      '/health/ready': /"ready"/,
      '/openapi.json': /"openapi":"3\.1/,
      '/': /Deckhand/,
      '/docs': /swagger-ui-bundle\.js/,
      '/docs/swagger-ui-bundle.js': /SwaggerUIBundle/,
      '/docs/swagger-ui.css': /swagger-ui/,
      '/pages/docs.js': /openapi\.json/,
      '/pages/pages.css': /prefers-color-scheme/,
    };
    await world.asViewer.post(LIST);

    for (const [path, holds] of Object.entries(expected)) {
      const response = await fetch(url + path);
      expect(response.status, path).toBe(200);
      expect(await response.text(), path).toMatch(holds);
    }
  });

  it('has pages that fetch nothing from elsewhere', async () => {
    for (const path of ['/', '/docs']) {
      const page = await (await fetch(url + path)).text();
      expect(page.match(/(?:src|href)="(?!\/|data:)[^"]*"/g)).toBeNull();
    }
  });

  it('404 for anything else, in the usual shape', async () => {
    for (const path of ['/nothing', '/docs/package.json', '/pages/../app.ts', '/apinothing']) {
      const response = await fetch(url + path);
      expect(response.status, path).toBe(404);
      expect(await response.json()).toEqual({ error: true, message: 'There is no such path.', data: [] });
    }
  });
});
