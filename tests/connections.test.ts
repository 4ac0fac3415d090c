import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { sql } from 'kysely';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { makeUnsentAnswers, type UnsentAnswers } from '../server/limits/unsentAnswers.ts';
import type { FairQueue } from '../server/runtime/fairQueue.ts';
import type { Answer } from './harness/caller.ts';
import { givenService, type TestService, testService } from './harness/service.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, testDb } from './harness/world.ts';

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
  it('429 for a user with more than 64 MiB of them, until they are dropped', async () => {
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

    await expect.poll(async () => (await asViewer.post(LIST)).status, { timeout: 15_000 }).toBe(429);
    expect((await asViewer.post(LIST)).body).toEqual({
      error: true,
      message: 'You have too many unread answers. Read them first.',
    });
    expect((await asMember.post(LIST)).status).toBe(200);
    expect(accepted.filter(({ timeout }) => timeout === 30_000).length).toBeGreaterThanOrEqual(9);
    for (const socket of opened) socket.destroy();
    await expect.poll(async () => (await asViewer.post(LIST)).status).toBe(200);
  });

  it.each([
    ['over REST', 'identity', 9],
    ['over REST, compressed', 'gzip', 15],
    ['over RPC, compressed', '', 15],
  ])('429 also for calls that arrived before the others were answered, %s', async (_, encoding, most) => {
    const answers = makeUnsentAnswers(1024 * 1024);
    // As if nobody read them.
    const open: UnsentAnswers['open'] = (key) => ({ ...answers.open(key), release: () => undefined });
    const { asViewer, project } = await givenWorld(await givenService({}, { unsentAnswers: { ...answers, open } }));
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
    const answers = makeUnsentAnswers();
    const open: UnsentAnswers['open'] = (key) => {
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
    const service = await givenService({}, { unsentAnswers: { ...answers, open }, queue });
    const { asViewer } = await givenWorld(service);
    service.app.server.on('request', (request, response) => {
      request.once('end', () => request.socket.destroy());
      response.once('close', disconnected.resolve);
    });

    const [socket] = await openMany(service, 1);
    socket!.write(
      `POST /api${LIST} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${asViewer.token}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
    );

    await expect.poll(() => made, { timeout: 15_000 }).toBe(2);
    expect((await asViewer.post(LIST)).status).toBe(200);
  });
});
