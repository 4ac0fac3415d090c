import { describe, expect, it } from 'vitest';
import { givenService, testService } from '../harness/service.ts';

const LIST = '/api/services/operations/v1/operations/boards/list';
const OURS = 'https://app.example.test';

const givenOrigins = async () => (await givenService({ ALLOWED_ORIGINS: `${OURS}, http://localhost:5173` })).url;

/** The CORS preflight request that a browser sends for a page of this origin. */
const preflight = (url: string, origin: string, path = LIST) =>
  fetch(url + path, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
  });

describe('a page of another origin', () => {
  it.each([
    [LIST, 'POST'],
    ['/trpc/boards.list', 'GET, POST'],
    ['/trpc/cards.create', 'POST'],
    ['/mcp', 'POST'],
  ])('may call %s with %s if ALLOWED_ORIGINS lists it', async (path, methods) => {
    const url = await givenOrigins();

    const asked = await preflight(url, OURS, path);
    const headers = { origin: OURS, 'content-type': 'application/json' };
    const called = await fetch(url + path, { method: 'POST', headers, body: '{}' });

    expect(asked.status).toBe(204);
    expect(Object.fromEntries(asked.headers)).toMatchObject({
      'access-control-allow-origin': OURS,
      'access-control-allow-methods': methods,
      'access-control-allow-headers':
        'Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, X-Deckhand-Client, X-Project-Id, X-Request-Id, traceparent, tracestate, trpc-accept',
      'x-ratelimit-limit': '1000000',
      vary: 'Origin',
    });
    expect(called.status).toBe(401);
    expect(called.headers.get('access-control-allow-origin')).toBe(OURS);
    expect(called.headers.get('access-control-expose-headers')).toContain(
      'X-Error-Reason, Retry-After, ETag, Idempotent-Replayed',
    );
  });

  it('405 for its preflight if ALLOWED_ORIGINS does not list it, or is empty', async () => {
    for (const [url, origin] of [
      [await givenOrigins(), 'https://evil.example.test'],
      [await givenOrigins(), `${OURS}.evil.test`],
      [await givenOrigins(), 'null'],
      [(await testService()).url, OURS],
    ] as const) {
      const asked = await preflight(url, origin);
      expect(asked.status).toBe(405);
      expect(asked.headers.get('access-control-allow-origin')).toBeNull();
    }
  });
});
