import { once } from 'node:events';
import { connect } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { givenService, testService } from './harness/service.ts';

const PATH = '/api/services/operations/v1/operations/boards/list';

/** Sends raw bytes, and returns the answer that came before the connection was closed. */
async function send(url: string, bytes: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(bytes);
  const text = (await socket.setEncoding('utf8').toArray()).join('');
  socket.destroy();
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const [statusLine, ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => line.split(': ')).map(([name, value]) => [name!.toLowerCase(), value]),
  );
  return { status: Number(statusLine!.split(' ')[1]), headers, body: JSON.parse(body) };
}

beforeAll(() => testService());

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
