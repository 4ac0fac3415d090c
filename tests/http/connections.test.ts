import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { sql } from 'kysely';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { makeUnsentResponses, type UnsentResponses } from '../../server/limits/unsentResponses.ts';
import { type FairQueue, makeFairQueue } from '../../server/runtime/fairQueue.ts';
import { tooManyRequests } from '../../shared/errors.ts';
import { type Answer, makeCaller } from '../harness/caller.ts';
import { patientQueues } from '../harness/patientQueue.ts';
import { isWhole } from '../harness/sample.ts';
import { givenService, type TestService, testService } from '../harness/service.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, testDb } from '../harness/world.ts';

const GET = '/services/operations/v1/operations/boards/get';
const LIST = '/services/operations/v1/operations/boards/list';

beforeAll(() => testService());

const opened: Socket[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
});

async function open({ url }: TestService): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  opened.push(socket);
  await once(socket, 'connect');
  return socket;
}

const openMany = async (service: TestService, count: number) => {
  const sockets: Socket[] = [];
  for (let at = 0; at < count; at++) sockets.push(await open(service));
  return sockets;
};

describe('connections', () => {
  it('are limited to 1,000 per address: one more is closed, until another one ends', async () => {
    const service = await givenService();
    const [first] = await openMany(service, 1000);

    const refused = await open(service);
    await once(refused.resume(), 'close');
    await Promise.all([once(first!, 'close'), first!.end()]);

    expect((await fetch(`${service.url}/health/live`)).status).toBe(200);
  });

  it('from a proxy are not limited', async () => {
    const service = await givenService({ TRUST_PROXY: '1' });
    await openMany(service, 1001);

    expect((await fetch(`${service.url}/health/live`)).status).toBe(200);
  });
});

describe('unread answers', () => {
  it.runIf(isWhole)('429 for a user with more than 64 MiB of them, until they are dropped', async () => {
    const service = await givenService();
    const { asViewer, asMember, project } = await givenWorld(service);
    const id = await givenBoard(project);
    const card = await givenCard(project, { group_id: await givenGroup(project, id) });
    await query(await testDb(), sql`update cards set description = repeat('x', 7 * 1024 * 1024) where id = ${card}`);
    const accepted: Socket[] = [];
    service.app.server.on('connection', (socket) => accepted.push(socket));

    const body = JSON.stringify({ id });
    for (const socket of await openMany(service, 12)) {
      socket
        .pause()
        .write(
          `POST /api${GET} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${asViewer.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
    }

    await expect.poll(async () => (await asViewer.post(LIST)).status).toBe(429);
    expect((await asViewer.post(LIST)).body).toEqual({
      error: true,
      message: 'You have too many unread answers. Read them first.',
    });
    expect((await asMember.post(LIST)).status).toBe(200);
    const sending = () => accepted.filter(({ timeout }) => timeout === 30_000).length;
    await expect.poll(sending).toBeGreaterThanOrEqual(9);
    for (const socket of opened) socket.destroy();
    await expect.poll(async () => (await asViewer.post(LIST)).status).toBe(200);
  });

  it.each([
    ['over REST', 'identity', 9],
    ['over REST, compressed', 'gzip', 15],
    ['over RPC, compressed', '', 15],
  ])('429 also for calls that arrived before the others were answered, %s', async (_, encoding, most) => {
    const answers = makeUnsentResponses(1024 * 1024);
    // As if nobody read them.
    const open: UnsentResponses['open'] = (key) => ({ ...answers.open(key), release: () => undefined });
    const others = { unsentResponses: { ...answers, open }, ...(await patientQueues()) };
    const { asViewer, project } = await givenWorld(await givenService({}, others));
    const id = await givenBoard(project);
    const card = await givenCard(project, { group_id: await givenGroup(project, id) });
    // 125 KiB of digits, which gzip can only halve.
    const digits = sql`select string_agg(md5(n::text), '') from generate_series(1, 4000) as n`;
    await query(await testDb(), sql`update cards set description = (${digits}) where id = ${card}`);
    const get = () =>
      encoding === ''
        ? asViewer.alone().rpc.boards.get.query({ id })
        : asViewer.post(GET, { id }, { 'accept-encoding': encoding }).then(mustBeServed);

    const calls = await Promise.allSettled(Array.from({ length: 40 }, get));

    const refused = calls.filter((call): call is PromiseRejectedResult => call.status === 'rejected');
    for (const { reason } of refused) expect(reason).toMatchObject({ status: 429, reason: 'answers_unread' });
    expect(calls.length - refused.length).toBeGreaterThanOrEqual(9);
    // Four more may be running when the limit is reached.
    expect(calls.length - refused.length).toBeLessThanOrEqual(most + 4);
  });

  const mustBeServed = ({ status, headers }: Answer) => {
    if (status !== 200) throw { status, reason: headers.get('x-error-reason') };
  };

  it('are not counted if the caller disconnects before they are written', async () => {
    let made = 0;
    const answers = makeUnsentResponses();
    const open: UnsentResponses['open'] = (key) => {
      const answer = answers.open(key);
      const setBytes = () => {
        made++;
        answer.setBytes(65 * 1024 * 1024);
      };
      return { ...answer, setBytes };
    };
    const disconnected = Promise.withResolvers<void>();
    const load = () => ({ running: 0, waiting: 0 });
    const queue: FairQueue = { run: (_key, work) => disconnected.promise.then(work), load };
    const service = await givenService({}, { unsentResponses: { ...answers, open }, queue });
    const { asViewer } = await givenWorld(service);
    service.app.server.on('request', (request, response) => {
      request.once('end', () => request.socket.destroy());
      response.once('close', disconnected.resolve);
    });

    const [socket] = await openMany(service, 1);
    socket!.write(
      `POST /api${LIST} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${asViewer.token}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
    );

    await expect.poll(() => made).toBe(2);
    expect((await asViewer.post(LIST)).status).toBe(200);
  });
});

describe('a caller who leaves', () => {
  /** A service with one place in its queue, and a call that its caller can leave. `begun` are the calls that got the place. */
  const givenCall = async (path: string, body: object, gate?: Promise<void>) => {
    const refuse = () => tooManyRequests('The service is busy. Try again shortly.', 1, 'service_busy');
    const queue = makeFairQueue({ running: 1, runningPerKey: 1, waiting: 10, waitingPerKey: 10, refuse });
    const begun: string[] = [];
    const run: FairQueue['run'] = (key, work, options) =>
      queue.run(
        key,
        async () => {
          begun.push(key);
          await gate;
          return work();
        },
        options,
      );
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '3' }, { queue: { ...queue, run } });
    const { token } = (await givenWorld()).asMember;
    const leaving = new AbortController();
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const send = () =>
      fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body), signal: leaving.signal }).then(
        () => 'a response',
        (error) => error.name,
      );
    return { queue, begun, send, leave: () => leaving.abort(), caller: makeCaller(url, token) };
  };

  it.each([
    [`/api${LIST}`, {}],
    ['/trpc/boards.list', { json: {} }],
  ])('while the call waits in the queue: it never runs, and it counts (%s)', async (path, body) => {
    const { queue, begun, send, leave, caller } = await givenCall(path, body);
    const occupied = Promise.withResolvers<void>();
    const other = queue.run('other', () => occupied.promise);
    const sent = send();
    await expect.poll(() => queue.load().waiting).toBe(1);

    leave();

    expect(await sent).toBe('AbortError');
    await expect.poll(() => queue.load()).toEqual({ running: 1, waiting: 0 });
    occupied.resolve();
    await other;
    expect(begun).toEqual([]);
    expect((await caller.post(LIST)).headers.get('x-ratelimit-remaining')).toBe('1');
  });

  it('while the call runs: it is completed', async () => {
    const gate = Promise.withResolvers<void>();
    const title = randomUUID();
    const { queue, begun, send, leave } = await givenCall('/trpc/cards.create', { json: { title } }, gate.promise);
    const sent = send();
    await expect.poll(() => begun).toHaveLength(1);

    leave();

    expect(await sent).toBe('AbortError');
    gate.resolve();
    await expect.poll(() => queue.load().running).toBe(0);
    expect(await query(await testDb(), sql`select from cards where title = ${title}`)).toHaveLength(1);
  });
});
