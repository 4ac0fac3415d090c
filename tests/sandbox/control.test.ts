import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from 'vitest';
import { answerControl, hostProblem } from '../../client/testing/sandbox/control.ts';
import { uncheckedFetch } from '../harness/checkAnswers.ts';

const opened: { close: () => void }[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

const CONTROL = { describe: () => ({}), setClock: () => undefined } as unknown as Parameters<typeof answerControl>[0];

async function givenControl() {
  const server = createServer((received, response) => void answerControl(CONTROL, received, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.push({ close: () => server.close().closeAllConnections() });
  const { port } = server.address() as AddressInfo;
  const begin = (path: string, headers: IncomingHttpHeaders, answered: (status: number, body: string) => void) => {
    const call = request({ host: '127.0.0.1', port, method: 'POST', path, headers }, async (answer) =>
      answered(answer.statusCode ?? 0, await text(answer)),
    );
    opened.push({ close: () => call.destroy() });
    return call.on('error', () => undefined);
  };
  return { port, begin };
}

it.each([
  [403, '/_sandbox/clock', { origin: 'https://example.com' }],
  [404, '/_sandbox/nothing', {}],
  [405, '/_sandbox', {}],
])('%i for a wrong call does not wait for its body', async (expected, path, headers) => {
  const { begin } = await givenControl();

  const status = await new Promise((resolve) => begin(path, headers, resolve).write('{'));

  expect(status).toBe(expected);
});

it('HEAD is answered like GET, and a wrong method with those that are right', async () => {
  const { port } = await givenControl();
  const call = (method: string, path: string) =>
    uncheckedFetch()(`http://127.0.0.1:${port}${path}`, { method }).then(({ status, headers }) => [
      status,
      headers.get('allow'),
    ]);

  expect(await call('HEAD', '/_sandbox')).toEqual([200, null]);
  expect(await call('PUT', '/_sandbox/faults')).toEqual([405, 'POST, DELETE']);
});

it('413 for more than 64 KiB does not wait for the rest', async () => {
  const { begin } = await givenControl();

  const answered = await new Promise((resolve) =>
    begin('/_sandbox/clock', {}, (status, body) => resolve([status, JSON.parse(body)])).write('x'.repeat(200_000)),
  );

  expect(answered).toEqual([413, { error: true, message: 'The body must have at most 65536 bytes.' }]);
});

it('200 for exactly 64 KiB', async () => {
  const { begin } = await givenControl();

  const status = await new Promise((resolve) => begin('/_sandbox/clock', {}, resolve).end('{}'.padEnd(65_536)));

  expect(status).toBe(200);
});

it.each([
  '127.0.0.1:3100',
  '192.0.2.7',
  '[::1]:3100',
  'localhost:3100',
  'LOCALHOST',
  'board.localhost:3100',
  'sandbox:3100',
  'host.docker.internal:3100',
  'tests.example:3100',
  undefined,
])('a call of %s is answered', (host) => {
  expect(hostProblem({ host }, 'tests.example')).toBeUndefined();
});

it.each(['rebound.example:3100', 'localhost.example', '127.0.0.1.example', 'a.host.docker.internal', '', ':'])(
  'a call of %j is refused',
  (host) => {
    expect(hostProblem({ host }, '127.0.0.1')).toContain('Call it by its IP address or as localhost');
  },
);
