import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { document } from '../../server/contract/violations.ts';
import { testService } from '../harness/service.ts';
import { givenCard, givenComment, givenTag, givenWorld, type World } from '../harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';
const LIST = '/services/operations/v1/operations/boards/list';

let url: string;
let world: World;
beforeAll(async () => {
  url = (await testService()).url;
  world = await givenWorld();
});

describe('every answer under /api and /trpc', () => {
  it('has the rate limit and request id headers', async () => {
    const addresses = ['/api', '/api/nothing', `/api${CREATE}`, '/api/%zz', '/trpc', '/trpc/cards.create', '/trpc/%zz'];

    for (const path of addresses) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const { status, headers } = await fetch(url + path, { method });
        expect(status, `${method} ${path}`).toBeGreaterThanOrEqual(400);
        expect(Object.fromEntries(headers), `${method} ${path}`).toMatchObject({
          'x-ratelimit-limit': '1000000',
          'x-ratelimit-remaining': expect.stringMatching(/^\d+$/),
          'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
          'cache-control': 'no-store',
        });
      }
    }
  });

  it('uses the X-Request-Id of the caller in answer and log, unless it has unsafe characters', async () => {
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

  it('is logged without its query string', async () => {
    const { url, logged } = await testService();
    const before = logged.length;

    await fetch(`${url}/trpc/auth.authenticate?input=hush`);
    await fetch(`${url}/trpc/boards.list?input=hush`, { headers: { authorization: `Bearer ${world.asViewer.token}` } });
    await fetch(`${url}/trpc/boards.list?input=hush`, { method: 'PUT' });
    for (const path of ['/api/v1/authenticate?password=hush', '/?hush']) await fetch(url + path);

    const lines = () => logged.slice(before);
    await expect
      .poll(() => lines().map(({ path, operation }) => path ?? operation))
      .toEqual(['auth.authenticate', 'boards.list', '/trpc/boards.list', '/api/v1/authenticate', '/']);
    expect(JSON.stringify(lines())).not.toContain('hush');
  });
});

describe('REST bodies', () => {
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

  it('accepts a body of 1 MiB', async () => {
    const around = '{"title": "x", "ignored": ""}';
    const ignored = 'd'.repeat(1024 * 1024 - around.length);

    const answer = await world.asMember.post(CREATE, around.replace('""', `"${ignored}"`));

    expect(answer.status).toBe(201);
  });

  it.each([
    ['text that is not JSON', 'title=x', 'The body is not valid JSON.'],
    ['a number', '5', 'The body must be a JSON object.'],
    [
      '30,001 fields',
      `{${Array.from({ length: 30_001 }, (_, field) => `"f${field}":0`).join()}}`,
      'The body has too many fields: at most 30000.',
    ],
    ['half a million levels', nested(500_000), 'The body is nested too deeply: at most 64 levels.'],
  ])('400 for %s', async (_, body, message) => {
    const answer = await world.asMember.post(CREATE, body, { 'content-type': 'application/json' });

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: true, message, data: [] });
    expect(answer.headers.get('x-ratelimit-limit')).toBe('1000000');
  });

  it('accepts 64 levels, and does not count brackets inside strings', async () => {
    const deep = `{"title": "x", "more": ${nested(63)}}`;
    const bracketed = JSON.stringify({ title: `${'['.repeat(100)}"\\{` });

    expect((await world.asMember.post(CREATE, deep)).status).toBe(201);
    expect((await world.asMember.post(CREATE, bracketed)).status).toBe(201);
  });

  it('accepts application/json with parameters, in any case', async () => {
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset=UTF-8']) {
      expect((await world.asMember.post(CREATE, '{"title": "x"}', { 'content-type': type })).status, type).toBe(201);
    }
  });

  it('400 for another content type', async () => {
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

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json', 'nonsense', ';;'])(
    'accepts an empty body with the content type %s where none is required',
    async (type) => {
      expect((await world.asMember.post(LIST, '', { 'content-type': type })).status).toBe(200);
      expect((await world.asMember.post(LIST, ' ', { 'content-type': type })).status).toBe(400);
      expect(await world.asMember.post(CREATE, '', { 'content-type': type })).toMatchObject({
        status: 400,
        body: { message: 'Send a JSON object as the body, with Content-Type application/json.' },
      });
    },
  );

  it('accepts an empty chunked body of another content type', async () => {
    const headers = { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' };
    const authorization = `Bearer ${world.asMember.token}`;
    const call = request(`${url}/api${LIST}`, { method: 'POST', headers: { ...headers, authorization } });

    const [response] = (await once(call.end(), 'response')) as [IncomingMessage];

    expect(response.statusCode).toBe(200);
  });

  it('ignores unknown fields, even __proto__ and constructor', async () => {
    const answer = await world.asMember.post(
      CREATE,
      '{"title": "x", "__proto__": {"title": 5}, "constructor": 1, "toString": null, "project_id": 1}',
    );

    expect(answer).toMatchObject({ status: 201, body: { data: { card: { project_id: world.project.id } } } });
  });

  it('keeps working after a request is cut off', async () => {
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

it('ignores an unknown Expect header', async () => {
  const [response] = (await once(
    request(`${url}/api${LIST}`, { method: 'POST', headers: { expect: 'a miracle' } }).end(),
    'response',
  )) as [IncomingMessage];

  expect(response.statusCode).toBe(401);
  expect(response.headers).toHaveProperty('x-ratelimit-limit');
});

it('closes the connection after an Upgrade request, since later requests on it would get no answer', async () => {
  const { hostname, port } = new URL(url);
  const socket = connectSocket(Number(port), hostname);
  const upgrade = `POST /api${LIST} HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n`;

  socket.write(upgrade);
  const answer = await text(socket);

  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  expect(answer).toMatch(/^connection: close\r$/im);
});

describe('outside of REST and RPC', () => {
  it('404 for a checkout with a very long reference', async () => {
    const response = await fetch(`${url}/checkout/${'%25'.repeat(4000)}`);

    expect(response.status).toBe(404);
    expect(response.headers.get('x-request-id')).not.toBeNull();
  });

  it('serves the OpenAPI document that the tests check answers against', async () => {
    expect(await (await fetch(`${url}/openapi.json`)).json()).toEqual(JSON.parse(JSON.stringify(document)));
  });

  it('serves health, the document and the pages', async () => {
    const expected: Record<string, RegExp> = {
      '/health/live': /"live"/,
      '/health/ready': /"ready"/,
      '/openapi.json': /"openapi":"3\.1/,
      '/': /Deckhand/,
      '/docs': /\/pages\/api\/main\.js/,
      '/docs/guides': /<h1>Guides</,
      '/docs/guides/readme': /<h1 id="deckhand">/,
      '/docs/guides/rest': /<h2 id="repeat-a-call-safely">/,
      '/docs/guides/architecture.svg': /<svg/,
      '/pages/api/main.js': /loadDocument/,
      '/pages/pages.css': /prefers-color-scheme/,
    };
    await world.asViewer.post(LIST);

    for (const [path, content] of Object.entries(expected)) {
      const response = await fetch(url + path);
      expect(response.status, path).toBe(200);
      expect(await response.text(), path).toMatch(content);
    }
  });

  it('serves pages that load nothing from other hosts', async () => {
    for (const path of ['/', '/docs']) {
      const page = await (await fetch(url + path)).text();
      expect(page.match(/(?:src|href)="(?!\/|#|data:)[^"]*"/g)).toBeNull();
    }
  });
});

describe('a response that is not as documented', () => {
  const OPERATIONS = '/services/operations/v1/operations';

  it.each([
    ['cards/get', {}],
    ['cards/update', { title: 'x' }],
    ['cards/move', { group_id: null }],
    ['cards/snooze', {}],
    ['cards/list', {}],
  ])('500 for %s, and the error is logged', async (path, input) => {
    const { project, asMember } = await givenWorld();
    const tag_id = await givenTag(project, { id: -project.id });
    const id = await givenCard(project, { tag_id });

    await expectFault(`${OPERATIONS}/${path}`, path === 'cards/list' ? input : { id, ...input }, asMember);
  });

  it('500 for comments/mark-read, and the error is logged', async () => {
    const { project, users, asMember } = await givenWorld();
    const card = await givenCard(project);
    const parent_comment_id = await givenComment(project, card, users.member, { id: -project.id });
    const id = await givenComment(project, card, users.member, { parent_comment_id });

    await expectFault(`${OPERATIONS}/comments/mark-read`, { id }, asMember);
  });

  async function expectFault(path: string, input: object, caller: World['asMember']) {
    const { logged } = await testService();
    const before = logged.length;

    expect(await caller.post(path, input)).toMatchObject({
      status: 500,
      body: { message: 'Something went wrong on our side. Try again later.' },
    });
    expect(logged.slice(before).find(({ level }) => level === 50)).toMatchObject({ err: { type: 'ZodError' } });
  }
});
