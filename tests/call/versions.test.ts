import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { runCommandLine } from '../../server/cli/run.ts';
import { document } from '../../server/contract/violations.ts';
import { givenService, type TestService, testService } from '../harness/service.ts';
import { givenWorld, type World } from '../harness/world.ts';

const { version } = packageJson;
const LIST = '/services/operations/v1/operations/boards/list';
const STREAM = '/services/platforms/v1/events/stream';

let service: TestService;
let world: World;
beforeAll(async () => {
  service = await testService();
  world = await givenWorld();
});

type Request = RequestInit & { isSignedIn?: boolean };

async function answerTo(path: string, { isSignedIn = true, ...request }: Request = {}) {
  const authorization = isSignedIn && { authorization: `Bearer ${world.asOwner.token}` };
  const response = await fetch(service.url + path, { ...request, headers: { ...authorization, ...request.headers } });
  await response.body?.cancel();
  return { status: response.status, version: response.headers.get('x-deckhand-version') };
}

const json = (body: string): Request => ({
  method: 'POST',
  body,
  headers: { 'content-type': 'application/json' },
});
const streamed = { 'content-type': 'application/json', 'trpc-accept': 'application/jsonl' };

describe('the header X-Deckhand-Version', () => {
  it.each<[string, number, string, Request?]>([
    ['a REST call', 200, `/api${LIST}`, { method: 'POST' }],
    ['a REST stream', 200, `/api${STREAM}`],
    ['an RPC call', 200, '/trpc/boards.list'],
    ['an RPC batch', 207, '/trpc/boards.list,boards.list2?batch=1'],
    ['a streamed RPC batch', 200, '/trpc/boards.list?batch=1', { ...json('{}'), headers: streamed }],
    ['an RPC stream', 200, '/trpc/events.follow'],
    [
      'a refused RPC stream',
      200,
      '/trpc/events.follow',
      { isSignedIn: false, headers: { accept: 'text/event-stream' } },
    ],
    ['a 400 for broken JSON', 400, `/api${LIST}`, json('{')],
    ['a 401 over REST', 401, `/api${LIST}`, { method: 'POST', isSignedIn: false }],
    ['a 401 over RPC', 401, '/trpc/boards.list', { isSignedIn: false }],
    ['a 404 over REST', 404, '/api/nothing', { method: 'POST' }],
    ['a 404 over RPC', 404, '/trpc/nothing'],
    ['a 404 for an unknown page', 404, '/nothing'],
    ['a 404 for a path that can not be decoded', 404, '/api/%ff'],
    ['a 405 over REST', 405, `/api${LIST}`],
    ['a 405 over RPC', 405, '/trpc/cards.create'],
    ['a 400 for a large body', 400, `/api${LIST}`, json(`{"a":"${'x'.repeat(1024 * 1024)}"}`)],
    ['a 400 for another type', 400, `/api${LIST}`, { ...json('a'), headers: { 'content-type': 'text/csv' } }],
    ['a 422', 422, '/api/services/operations/v1/operations/cards/create', json('{}')],
    ['a health check', 200, '/health/ready'],
    ['the metrics', 401, '/metrics'],
    ['the start page', 200, '/'],
    ['a guide', 200, '/docs/guides/versions'],
    ['the document', 200, '/openapi.json'],
    ['a checkout page that does not exist', 404, '/checkout/nothing'],
    ['an unknown webhook', 404, '/webhooks/nothing', { method: 'POST' }],
  ])('is on %s', async (_, status, path, request) => {
    expect(await answerTo(path, request)).toEqual({ status, version });
  });

  it.each([
    ['headers that are too large', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`],
    ['what is not HTTP', 'hello\r\n\r\n'],
    ['CONNECT', 'CONNECT example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a missing Host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n'],
  ])('is on the answer to %s', async (_, bytes) => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    socket.write(bytes);

    const answer = (await socket.setEncoding('utf8').toArray()).join('');

    expect(answer.toLowerCase()).toContain(`\r\nx-deckhand-version: ${version}\r\n`);
  });

  it('is on a 429, and readable for pages of ALLOWED_ORIGINS', async () => {
    const origin = 'https://app.example.test';
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1', ALLOWED_ORIGINS: origin });
    const call = () => fetch(`${url}/trpc/plans.list`, { headers: { origin } });
    await call();

    const { status, headers } = await call();

    expect([status, headers.get('x-deckhand-version')]).toEqual([429, version]);
    expect(headers.get('access-control-expose-headers')).toContain('X-Deckhand-Version, Deprecation, Sunset, Link');
  });
});

describe('the version', () => {
  it('is that of package.json in the document and on the command line', async () => {
    expect(document.info.version).toBe(version);
    expect(await runCommandLine(['--version'], () => ({}))).toEqual({ exitCode: 0, printed: version });
  });

  it('of the client is in the line of each request in the log, if it is one', async () => {
    const { url, logged } = await givenService();
    const clients = [version, '1.2.3-"', 'x'.repeat(900), undefined];
    for (const client of clients)
      await fetch(`${url}/health/nothing`, { headers: client === undefined ? {} : { 'x-deckhand-client': client } });

    const shown = () => logged.filter(({ msg }) => msg === 'answered').map(({ client }) => client);
    await vi.waitFor(() => expect(shown()).toEqual([version, undefined, undefined, undefined]));
  });

  it('of the packages is the same wherever the guides name them', () => {
    const docs = join(import.meta.dirname, '../../docs');
    const pages = readdirSync(docs).filter((name) => name.endsWith('.md'));
    const text = pages.map((name) => readFileSync(join(docs, name), 'utf8')).join('');
    const named = [
      ...text.matchAll(/\bdeckhand(?:-client)?-(\d+\.\d+\.\d+)\.tgz|(?:version=|x-deckhand-version: )"?([\d.]+)/g),
    ];

    expect(named.length).toBeGreaterThan(5);
    expect(new Set(named.map(([, packed, shown]) => packed ?? shown))).toEqual(new Set([version]));
  });
});
