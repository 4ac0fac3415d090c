import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { givenService, testService } from '../harness/service.ts';
import { givenStripe } from '../harness/stripeService.ts';

const PATH = '/api/services/operations/v1/operations/boards/list';

/** Sends raw bytes, and returns the answer that came before the connection was closed. */
async function send(url: string, bytes: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(bytes);
  const answer = (await socket.setEncoding('utf8').toArray()).join('');
  socket.destroy();
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [statusLine, ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => line.split(': ')).map(([name, value]) => [name!.toLowerCase(), value]),
  );
  return { status: Number(statusLine!.split(' ')[1]), headers, body: JSON.parse(body) };
}

beforeAll(() => testService());

const NO_SUCH_PATH = { error: true, message: 'There is no such path.', data: [] };
const INVALID = 'This is not a valid HTTP request.';

describe('a malformed HTTP request', () => {
  it.each([
    ['an unknown method', `FROB ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`, 'The method is unknown.'],
    ['two lengths', `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, INVALID],
    [
      'Content-Length and chunks',
      `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      INVALID,
    ],
    [
      'headers too large',
      `POST ${PATH} HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`,
      'The headers are too large: at most 16 KiB.',
    ],
    ['text that is not HTTP', 'hello\r\n\r\n', 'The method is unknown.'],
    ['an unknown version', `POST ${PATH} HTTP/9.1\r\nHost: x\r\n\r\n`, INVALID],
    ['a header without a name', `POST ${PATH} HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n`, INVALID],
    ['CONNECT', 'CONNECT example.test:443 HTTP/1.1\r\nHost: example.test\r\n\r\n', 'CONNECT is not supported.'],
  ])('400 for %s, with the usual body and headers', async (_, bytes, message) => {
    const { url } = await testService();

    const answer = await send(url, bytes);

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: true, message, data: [] });
    expect(answer.headers).toMatchObject({
      connection: 'close',
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': expect.any(String),
      'x-error-reason': 'malformed_request',
      'x-ratelimit-limit': '1000000',
      'x-ratelimit-remaining': expect.any(String),
    });
  });

  it('400 for invalid chunks after valid headers', async () => {
    const { url } = await testService();
    const head = `POST /api/v1/authenticate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;

    const answer = await send(url, `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`);

    expect(answer).toMatchObject({ status: 400, body: { error: true, message: INVALID } });
    expect(answer.headers).toHaveProperty('x-ratelimit-remaining');
  });

  it.each(['/health/live', '/docs'])('400 for %s without a Host header', async (path) => {
    const { url } = await testService();

    const answer = await send(url, `GET ${path} HTTP/1.1\r\nConnection: close\r\n\r\n`);

    expect(answer).toMatchObject({ status: 400, body: { error: true, message: 'The Host header is missing.' } });
  });

  it('400 without a Host header', async () => {
    const { url } = await testService();
    const head = 'POST /api/v1/authenticate HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n';

    const answer = await send(url, `${head}Content-Length: 2\r\n\r\n{}`);

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: true, message: 'The Host header is missing.' });
    expect(answer.headers).toHaveProperty('x-ratelimit-remaining');
  });

  it('does not cut off the answer to a valid request before it', async () => {
    const { url } = await testService();

    const answer = await send(url, 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\nhello\r\n\r\n');

    expect(answer).toMatchObject({ status: 200, body: { status: 'live' } });
  });

  it('429 above the rate limit of the address', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1' });

    expect((await send(url, 'hello\r\n\r\n')).status).toBe(400);
    const refused = await send(url, 'hello\r\n\r\n');

    expect(refused.status).toBe(429);
    expect(refused.body).toEqual({ error: true, message: 'Too many requests. Try again later.' });
    expect(refused.headers['x-error-reason']).toBe('over_rate_limit');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  });

  it('is logged with its request id and address', async () => {
    const { url, logged } = await givenService();

    const { headers } = await send(url, 'hello\r\n\r\n');

    expect(logged).toContainEqual(
      expect.objectContaining({ reqId: headers['x-request-id'], status: 400, address: '127.0.0.1' }),
    );
  });

  it('causes no error when the caller has disconnected', async () => {
    const { url, app } = await givenService();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const [accepted] = await Promise.all([once(app.server, 'connection'), once(socket, 'connect')]);
    const closed = new Promise((resolve) => accepted[0].on('close', resolve));
    socket.write(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Le`);
    socket.resetAndDestroy();
    await closed;

    expect((await send(url, 'hello\r\n\r\n')).status).toBe(400);
  });
});

type Sent = { method?: string; headers?: Record<string, string | number>; body?: string };

async function request(url: string, { method = 'POST', headers = {}, body }: Sent = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>();
  httpRequest(url, { method, headers, agent: false }, resolve).on('error', reject).end(body);
  const response = await promise;
  return { status: response.statusCode!, headers: response.headers, body: await text(response) };
}

/** Announces a body that never comes: only a service that does not wait for it answers. */
async function announce(url: string, method: string, path: string): Promise<number> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(
    `${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n`,
  );
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  socket.once('data', resolve).once('close', () => reject(new Error('It was closed without an answer.')));
  const status = Number((await promise).toString().split(' ')[1]);
  socket.destroy();
  return status;
}

const UNKNOWN = ['/nope', '/apinothing', '/docs', '/webhooks/nope'];
const METHODS = ['PUT', 'OPTIONS', 'QUERY'];
/** Fastify can't read the last three. */
const TYPES = ['application/json', 'text/plain', 'multipart/form-data', 'a/b; c', ';', ' ', 'a/b/c'];

describe('a path without a route for the method', () => {
  it.each(UNKNOWN)('404 for POST %s before its body arrives, whatever its type', async (path) => {
    const { url } = await testService();

    expect(await announce(url, 'POST', path)).toBe(404);
    for (const type of TYPES) {
      const { status, headers, body } = await request(url + path, { headers: { 'content-type': type }, body: '{' });
      expect([type, status, JSON.parse(body)]).toEqual([type, 404, NO_SUCH_PATH]);
      expect(headers).toMatchObject({ 'x-error-reason': 'unknown_path', 'x-ratelimit-limit': '1000000' });
    }
  });

  it.each(METHODS)('404 for %s before its body arrives, 405 with Allow for an operation', async (method) => {
    const { url } = await testService();

    expect(await announce(url, method, '/nope')).toBe(404);
    expect(await announce(url, method, PATH)).toBe(405);
    const { headers } = await request(url + PATH, { method });
    expect(headers).toMatchObject({ allow: 'POST', 'x-ratelimit-limit': '1000000' });
  });

  it('404 for the preflight of an allowed origin', async () => {
    const { url } = await givenService({ ALLOWED_ORIGINS: 'https://app.example.test' });
    const headers = { origin: 'https://app.example.test', 'access-control-request-method': 'POST' };

    expect((await request(`${url}/nope`, { method: 'OPTIONS', headers })).status).toBe(404);
  });

  it.each([
    ['POST', '/nope'],
    ['POST', '/health/ready'],
    ['QUERY', '/nope'],
    ['HEAD', '/docs'],
  ])('counts, and is a 429 above the limit: %s %s', async (method, path) => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1' });

    expect((await request(url + path, { method, body: '{' })).headers['x-ratelimit-remaining']).toBe('0');
    const { status, headers } = await request(url + path, { method });

    expect([status, headers['x-error-reason']]).toEqual([429, 'over_rate_limit']);
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
  });
});

describe('a body that nobody asked for', () => {
  it('is not waited for by GET', async () => {
    const { url } = await givenService({ METRICS_TOKEN: 'a-token-for-prometheus' });
    const statuses = { '/docs': 200, '/metrics': 401, '/health/ready': 200, '/trpc/boards.list': 401 };

    for (const [path, status] of Object.entries(statuses)) expect(await announce(url, 'GET', path), path).toBe(status);
  });

  it.each(['pay', 'cancel'])('is not waited for, whatever its type: POST /checkout/…/%s', async (button) => {
    const { url } = await testService();

    expect(await announce(url, 'POST', `/checkout/x/${button}`)).toBe(303);
    for (const type of ['text/plain', ';']) {
      const { status } = await request(`${url}/checkout/x/${button}`, { headers: { 'content-type': type }, body: 'x' });
      expect([type, status]).toEqual([type, 303]);
    }
  });

  it('leaves the connection usable for the next request', async () => {
    const { url } = await testService();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const first = `POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n${'x'.repeat(600_000)}`;
    socket.write(`${first}GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);

    const answers = (await socket.setEncoding('utf8').toArray()).join('');

    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 404', 'HTTP/1.1 200']);
  });
});

describe('a body of a type that can not be read', () => {
  it.each(['text/plain', ';'])('400 for "%s" where JSON is expected', async (type) => {
    const { url } = await testService();

    for (const path of ['/api/v1/authenticate', '/trpc/auth.authenticate']) {
      const { status } = await request(url + path, { headers: { 'content-type': type }, body: '{}' });
      expect([path, status]).toEqual([path, 400]);
    }
  });

  it('400 for a payment notification, before its body arrives if it has no signature', async () => {
    const { service } = await givenStripe();
    const notify = (type: string) =>
      request(`${service.url}/webhooks/stripe`, {
        headers: { 'content-type': type, 'stripe-signature': 't=1,v1=00' },
        body: '{}',
      });

    for (const type of ['application/json', ';']) expect((await notify(type)).status, type).toBe(400);
    expect((await notify('x')).headers).toMatchObject({ 'x-ratelimit-limit': '1000000' });
    expect(await announce(service.url, 'POST', '/webhooks/stripe')).toBe(400);
  });
});

describe('probes', () => {
  it('of health are never a 429 and have no limit; scrapes with the token neither, others count', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1', METRICS_TOKEN: 'a-token-for-prometheus' });
    const scrape = (token: string) =>
      request(`${url}/metrics`, { method: 'GET', headers: { authorization: `Bearer ${token}` } });

    expect((await scrape('a-token-for-prometheus')).headers['x-ratelimit-remaining']).toBeUndefined();
    expect(await scrape('another')).toMatchObject({ status: 401, headers: { 'x-ratelimit-remaining': '0' } });
    expect((await scrape('another')).status).toBe(429);

    expect((await scrape('a-token-for-prometheus')).status).toBe(200);
    for (const method of ['GET', 'HEAD']) {
      expect((await request(`${url}/health/live`, { method })).status).toBe(200);
      expect((await request(`${url}/health/ready`, { method })).status).toBe(200);
    }
  });
});
