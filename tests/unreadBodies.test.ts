import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { givenService, testService } from './harness/service.ts';
import { givenStripe } from './harness/stripeService.ts';

const OPERATION = '/api/services/operations/v1/operations/boards/list';
const NO_SUCH_PATH = { error: true, message: 'There is no such path.', data: [] };

beforeAll(() => testService());

type Sent = { method?: string; headers?: Record<string, string | number>; body?: string };

async function send(url: string, { method = 'POST', headers = {}, body }: Sent = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>();
  request(url, { method, headers, agent: false }, resolve).on('error', reject).end(body);
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

const UNKNOWN = ['/nope', '/', '/docs', '/openapi.json', '/pages/nope', '/checkout/x', '/checkout/x/nope'];
const OPERATORS = ['/metrics', '/health/live', '/health/ready', '/webhooks/stripe', '/webhooks/nope'];
const METHODS = ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY', 'PROPFIND'];
/** Fastify can't read the last four. */
const TYPES = ['application/json', 'text/plain', 'multipart/form-data', 'a/b; c', 'x', ';', ' ', 'a/b/c'];

describe('a path without a route for the method', () => {
  it.each([...UNKNOWN, ...OPERATORS])('404 for POST %s before its body arrives', async (path) => {
    const { url } = await testService();

    expect(await announce(url, 'POST', path)).toBe(404);
  });

  it.each(METHODS)('404 for %s before its body arrives, 405 with Allow for an operation', async (method) => {
    const { url } = await testService();

    expect(await announce(url, method, '/nope')).toBe(404);
    expect(await announce(url, method, OPERATION)).toBe(405);
    const { headers } = await send(url + OPERATION, { method });
    expect(headers).toMatchObject({ allow: 'POST', 'x-ratelimit-limit': '1000000' });
  });

  it.each(TYPES)('404 with the usual body and headers for a broken body of the type "%s"', async (type) => {
    const { url } = await testService();

    for (const path of UNKNOWN) {
      const { status, headers, body } = await send(url + path, { headers: { 'content-type': type }, body: '{' });

      expect([path, status, JSON.parse(body)]).toEqual([path, 404, NO_SUCH_PATH]);
      expect(headers).toMatchObject({ 'x-error-reason': 'unknown_path', 'x-ratelimit-limit': '1000000' });
    }
  });

  it('404 for the preflight of an allowed origin', async () => {
    const { url } = await givenService({ ALLOWED_ORIGINS: 'https://app.example.test' });
    const headers = { origin: 'https://app.example.test', 'access-control-request-method': 'POST' };

    expect((await send(`${url}/nope`, { method: 'OPTIONS', headers })).status).toBe(404);
  });

  it.each([
    ...[...UNKNOWN, ...OPERATORS].map((path) => ['POST', path]),
    ...METHODS.map((method) => [method, '/nope']),
    ['HEAD', '/nope'],
    ['HEAD', '/docs'],
    ['GET', '/nope'],
    ['OPTIONS', '/docs'],
  ] as [string, string][])('counts, and is a 429 above the limit: %s %s', async (method, path) => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1' });

    expect((await send(url + path, { method, body: '{' })).headers['x-ratelimit-remaining']).toBe('0');
    const refused = await send(url + path, { method });

    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(refused.headers['x-error-reason']).toBe('over_rate_limit');
  });
});

describe('a body that nobody asked for', () => {
  it.each(['/', '/docs', '/openapi.json', '/metrics', '/health/live', '/health/ready', '/trpc/boards.list'])(
    'is not waited for: GET %s',
    async (path) => {
      const { url } = await givenService({ METRICS_TOKEN: 'a-token-for-prometheus' });

      expect(await announce(url, 'GET', path)).toBe({ '/metrics': 401, '/trpc/boards.list': 401 }[path] ?? 200);
    },
  );

  it.each(['pay', 'cancel'])('is not waited for, whatever its type: POST /checkout/…/%s', async (button) => {
    const { url } = await testService();

    expect(await announce(url, 'POST', `/checkout/x/${button}`)).toBe(303);
    for (const type of TYPES) {
      const { status } = await send(`${url}/checkout/x/${button}`, { headers: { 'content-type': type }, body: 'x' });
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
  it.each(TYPES.slice(1))('400 for "%s" where JSON is expected', async (type) => {
    const { url } = await testService();

    for (const path of ['/api/v1/authenticate', '/trpc/auth.authenticate']) {
      const { status } = await send(url + path, { headers: { 'content-type': type }, body: '{}' });
      expect([path, status]).toEqual([path, 400]);
    }
  });

  it('400 for a payment notification, before its body arrives if it has no signature', async () => {
    const { service } = await givenStripe();
    const notify = (type: string) =>
      send(`${service.url}/webhooks/stripe`, {
        headers: { 'content-type': type, 'stripe-signature': 't=1,v1=00' },
        body: '{}',
      });

    for (const type of TYPES) expect([type, (await notify(type)).status]).toEqual([type, 400]);
    expect((await notify('x')).headers).toMatchObject({ 'x-ratelimit-limit': '1000000' });
    expect(await announce(service.url, 'POST', '/webhooks/stripe')).toBe(400);
  });
});

describe('probes', () => {
  it('of health are never a 429 and have no limit; scrapes with the token neither, others count', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1', METRICS_TOKEN: 'a-token-for-prometheus' });
    const scrape = (token: string) =>
      send(`${url}/metrics`, { method: 'GET', headers: { authorization: `Bearer ${token}` } });

    expect((await scrape('a-token-for-prometheus')).headers['x-ratelimit-remaining']).toBeUndefined();
    expect(await scrape('another')).toMatchObject({ status: 401, headers: { 'x-ratelimit-remaining': '0' } });
    expect((await scrape('another')).status).toBe(429);

    expect((await scrape('a-token-for-prometheus')).status).toBe(200);
    for (const method of ['GET', 'HEAD']) {
      expect((await send(`${url}/health/live`, { method })).status).toBe(200);
      expect((await send(`${url}/health/ready`, { method })).status).toBe(200);
    }
  });
});
