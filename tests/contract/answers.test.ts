import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Every REST answer of every test is checked against the document; these wrong answers must fail that check. */

const GET = '/services/operations/v1/operations/boards/get';
const DELETE = '/services/operations/v1/operations/cards/delete';
const SYNC = '/services/operations/v1/admin/master-boards/sync';
const HEADERS = {
  ...{ 'X-RateLimit-Limit': '600', 'X-RateLimit-Remaining': '599', 'X-RateLimit-Reset': '60' },
  ...{ 'X-Request-Id': 'a', 'X-Deckhand-Version': '1.0.0' },
};
const ERROR_HEADERS = { ...HEADERS, 'X-Error-Reason': 'not_found' };
const DELETED = { error: false, message: 'Card deleted.', data: [] };
const MISSING = { error: true, message: 'There is no such path.', data: [] };

let sent: { status: number; headers: Record<string, string>; body: string };
const server = createServer((_request, response) => {
  response.writeHead(sent.status, { 'Content-Type': 'application/json; charset=utf-8', ...sent.headers });
  response.end(sent.body);
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => server.close());

/** The error of the check for an answer, or undefined if it passes. */
async function errorOf(
  path: string,
  status: number,
  body: unknown,
  headers: Record<string, string> = HEADERS,
  method = 'POST',
): Promise<string | undefined> {
  sent = { status, headers, body: JSON.stringify(body) };
  const { port } = server.address() as AddressInfo;
  return fetch(`http://127.0.0.1:${port}/api${path}`, { method }).then(
    () => undefined,
    ({ message }) => message,
  );
}

describe('the check of answers', () => {
  it('accepts documented answers', async () => {
    expect(await errorOf(DELETE, 200, DELETED)).toBeUndefined();
    expect(await errorOf('/nothing', 404, MISSING, ERROR_HEADERS)).toBeUndefined();
    expect(
      await errorOf(DELETE, 405, MISSING, { ...HEADERS, 'X-Error-Reason': 'wrong_method', Allow: 'POST' }, 'GET'),
    ).toBeUndefined();
  });

  it.each([
    ['a status that is not listed', DELETE, 201, DELETED, HEADERS, /status is not listed/],
    ['a header that is missing', DELETE, 200, DELETED, { 'X-Request-Id': 'a' }, /X-RateLimit-Limit is missing/],
    ['a header that is not listed', DELETE, 200, DELETED, { ...HEADERS, 'X-More': '1' }, /x-more is not listed/],
    ['429 without Retry-After', DELETE, 429, { error: true, message: 'x' }, ERROR_HEADERS, /Retry-After is missing/],
    [
      'an extra field of the data',
      SYNC,
      200,
      { ...DELETED, data: { synced_count: 1, skipped_no_access: 1, more: 1 } },
      HEADERS,
      /additionalProperty":"more"/,
    ],
    ['a field that is missing', SYNC, 200, { ...DELETED, data: { synced_count: 1 } }, HEADERS, /skipped_no_access/],
    [
      'the body of another status',
      DELETE,
      403,
      { error: true, message: 'x' },
      ERROR_HEADERS,
      /required property 'data'/,
    ],
    ['an error without a reason', '/nothing', 404, MISSING, HEADERS, /X-Error-Reason is missing/],
    ['the reason of another status', DELETE, 403, MISSING, ERROR_HEADERS, /not_found is not listed for 403/],
    ['a success with a reason', DELETE, 200, DELETED, ERROR_HEADERS, /x-error-reason is not listed/],
    ['JSON text of another shape', GET, 200, { ...DELETED, data: { board: '{"id": 1}' } }, HEADERS, /'title'/],
  ])('refuses %s', async (_, path, status, body, headers, error) => {
    expect(await errorOf(path, status, body, headers)).toMatch(error);
  });
});
