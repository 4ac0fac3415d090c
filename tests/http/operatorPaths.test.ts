import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { makeCaller } from '../harness/caller.ts';
import { databaseUrl, givenService, testService } from '../harness/service.ts';

const LIST = '/services/operations/v1/operations/boards/list';
const TOKEN = 'a-token-for-prometheus';

/** Sends the path unchanged; `fetch` would normalise it. */
async function get(url: string, path: string): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>();
  request({ hostname, port, path }, resolve).on('error', reject).end();
  const response = await promise;
  return { status: response.statusCode!, body: await text(response) };
}

describe('GET /metrics', () => {
  const metricsOf = async (settings: Record<string, string | undefined>, ...tokens: (string | undefined)[]) => {
    const { url } = await givenService(settings);
    const ask = async (authorization?: string) => {
      const response = await fetch(`${url}/metrics`, { headers: authorization === undefined ? {} : { authorization } });
      const reason = response.headers.get('x-error-reason');
      return { status: response.status, reason, body: await response.text() };
    };
    return Promise.all(tokens.map(ask));
  };

  it('200 with the token, 401 with anything else', async () => {
    const wrong = [undefined, '', 'Bearer ', `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`];

    const [right, ...others] = await metricsOf({ METRICS_TOKEN: TOKEN }, `Bearer ${TOKEN}`, ...wrong);

    expect(right).toMatchObject({ status: 200, body: expect.stringContaining('process_cpu_seconds_total') });
    expect(others.map(({ reason }) => reason)).toEqual([
      ...['not_signed_in', 'not_signed_in', 'not_signed_in'],
      ...['credential_invalid', 'credential_invalid', 'not_signed_in'],
    ]);
    for (const { status, body } of others) {
      expect(status).toBe(401);
      expect(JSON.parse(body)).toMatchObject({ error: true, message: expect.stringContaining('METRICS_TOKEN') });
      expect(body).not.toContain(TOKEN);
    }
  });

  it.skipIf(databaseUrl)('200 without a token on loopback, 403 on other addresses', async () => {
    const closed = { status: 403, reason: 'metrics_closed', body: expect.stringContaining('METRICS_TOKEN') };

    expect(await metricsOf({ METRICS_TOKEN: undefined }, undefined)).toMatchObject([{ status: 200 }]);
    expect(await metricsOf({ METRICS_TOKEN: undefined, HOST: '0.0.0.0' }, undefined)).toMatchObject([closed]);
  });

  it.skipIf(!databaseUrl)('403 without a token on a database server', async () => {
    expect(await metricsOf({ METRICS_TOKEN: undefined }, undefined, 'Bearer undefined')).toMatchObject([
      { status: 403 },
      { status: 403 },
    ]);
  });
});

describe('static paths', () => {
  it.each(['/pages/load.js', '/projects/7/boards/3', '/docs/', '/favicon.ico', '/pages/demo-users.json'])(
    '200 for %s',
    async (path) => {
      expect((await get((await testService()).url, path)).status).toBe(200);
    },
  );

  it.each([
    '/%2Fetc/passwd',
    '///etc/passwd',
    '/../../../../etc/passwd',
    '/..%2f..%2fapp.ts',
    '/%2e%2e/pages.ts',
    '/..',
    '/.env',
    '/\\..\\pages.ts',
    '/%5c..%5cpages.ts',
    '/pages.css%00.html',
    '/%',
    '/%ED%A0%80',
    `/${'a'.repeat(8000)}`,
    `/${'a/'.repeat(4000)}`,
    '/',
    '/package.json',
  ])('404 for %s below the folders of static files', async (path) => {
    const { url } = await testService();

    for (const folder of ['/pages', '/docs/guides']) {
      const { status, body } = await get(url, folder + path);
      expect([status, JSON.parse(body)]).toEqual([404, { error: true, message: 'There is no such path.', data: [] }]);
    }
  });
});

describe('the pages', () => {
  it.each(['/', '/docs', '/docs/guides'])('allow only scripts, styles and fonts of the service on %s', async (path) => {
    const policy = (await fetch((await testService()).url + path)).headers.get('content-security-policy')!;

    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    for (const kind of ['default', 'script', 'style', 'font'])
      expect(policy.split(';')).toContain(`${kind}-src 'self'`);
    expect(policy).toContain("require-trusted-types-for 'script';trusted-types deckhand");
  });
});

describe('GET /openapi.json', () => {
  it('304 if the ETag matches', async () => {
    const { url } = await testService();
    const first = await fetch(`${url}/openapi.json`);
    const etag = first.headers.get('etag')!;

    const again = await fetch(`${url}/openapi.json`, { headers: { 'if-none-match': etag } });
    const other = await fetch(`${url}/openapi.json`, { headers: { 'if-none-match': '"other"' } });

    expect(await first.json()).toMatchObject({ openapi: '3.1.0' });
    expect(first.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect([again.status, await again.text()]).toEqual([304, '']);
    expect(other.status).toBe(200);
  });
});

describe('the rate limit of addresses', () => {
  const given = async (limit: number, more: Record<string, string> = {}) =>
    (await givenService({ RATE_LIMIT_PER_MINUTE: String(limit), ...more })).url;

  it.each(['/', '/openapi.json', '/pages/pages.css'])('429 with Retry-After above it for %s', async (path) => {
    const url = await given(1);

    expect((await fetch(url + path)).headers.get('x-ratelimit-remaining')).toBe('0');
    const refused = await fetch(url + path);

    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await refused.json()).toMatchObject({ error: true, message: 'Too many requests. Try again later.' });
  });

  it.each(['GET', 'POST'])('429 as a page above it for %s /checkout', async (method) => {
    const url = await given(1);
    const ask = () =>
      fetch(`${url}/checkout/nothing${method === 'POST' ? '/pay' : ''}`, { method, redirect: 'manual' });

    expect((await ask()).status).not.toBe(429);
    const refused = await ask();

    expect(refused.status).toBe(429);
    expect(refused.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await refused.text()).toContain('Too many requests. Try again later.');
  });

  it('is shared by pages and calls without a token; health and metrics are not limited', async () => {
    const url = await given(2, { METRICS_TOKEN: TOKEN });

    await fetch(`${url}/docs`);
    expect((await makeCaller(url).post(LIST)).status).toBe(401);

    expect((await makeCaller(url).post(LIST)).status).toBe(429);
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
    expect((await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(200);
  });

  it('429 above it for payment notifications without a valid signature', async () => {
    const keys = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' };
    const url = await given(2, { ...keys, TEST_CHECKOUT: 'off' });
    const notify = (headers: Record<string, string>) =>
      fetch(`${url}/webhooks/stripe`, { method: 'POST', body: '{}', headers });

    expect((await notify({})).status).toBe(400);
    expect((await notify({ 'stripe-signature': 't=1,v1=00' })).status).toBe(400);
    const refused = await notify({ 'stripe-signature': 't=1,v1=00' });

    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  });
});
