import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createServer, type Server, type Socket } from 'node:net';
import { pino } from 'pino';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { makeChangeSignal } from '../../server/limits/changeSignal.ts';
import { type Counters, openCounters } from '../../server/limits/counters.ts';

const hasRedisServer = spawnSync('redis-server', ['--version']).status === 0;
if (!hasRedisServer) console.log('SKIPPED: a frozen Redis. redis-server is not installed.');

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function givenCounters(url: string) {
  const logged: { level: number; msg: string }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const counters: Counters = await openCounters(url, log);
  cleanups.push(() => counters.close());
  const counter = counters.make('test', 10, 60);
  const count = async () => (await counter.penalty('key', 1)).consumedPoints;
  return { count, counters, logged: () => logged.map(({ msg }) => msg) };
}

const listen = (server: Server) =>
  new Promise<number>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
  );

/** Accepts connections, but never answers. */
async function givenSilentServer(): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  const port = await listen(server);
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `redis://127.0.0.1:${port}`;
}

/** A private Redis that the test may freeze. */
async function givenRedis(): Promise<{ url: string; process: ChildProcess }> {
  const probe = createServer();
  const port = await listen(probe);
  await new Promise((resolve) => probe.close(resolve));
  const redis = spawn('redis-server', [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
  ]);
  cleanups.push(() => redis.kill('SIGKILL'));
  await new Promise<void>((resolve, reject) => {
    redis.on('exit', () => reject(new Error('redis-server did not start.')));
    redis.stdout.on('data', (text) => String(text).includes('Ready to accept connections') && resolve());
  });
  return { url: `redis://127.0.0.1:${port}`, process: redis };
}

const GONE = 'Redis is unreachable: this node counts in memory.';
const BACK = 'Redis is back: the nodes share their counts again.';

/** The count, or "waited" if it needed more than the current turn of the event loop. */
const countAtOnce = ({ count }: { count: () => Promise<number> }) =>
  Promise.race([count(), new Promise<string>((resolve) => setImmediate(() => resolve('waited')))]);

describe('counters, while Redis', () => {
  it.each([
    ['refuses connections', async () => 'redis://127.0.0.1:1'],
    ['accepts connections but never answers', givenSilentServer],
  ])('%s: count in memory at once, and log that once', async (_, givenServer) => {
    const node = await givenCounters(await givenServer());

    expect([await countAtOnce(node), await countAtOnce(node), await countAtOnce(node)]).toEqual([1, 2, 3]);
    expect(node.logged()).toEqual([GONE]);
  });

  it.skipIf(!hasRedisServer)('freezes: wait once, then count in memory until it is back', async () => {
    const redis = await givenRedis();
    const [node, other] = [await givenCounters(redis.url), await givenCounters(redis.url)];
    expect([await node.count(), await other.count(), await node.count()]).toEqual([1, 2, 3]);

    redis.process.kill('SIGSTOP');
    expect(await Promise.all([node.count(), node.count()])).toEqual([1, 2]);
    expect([await countAtOnce(node), await countAtOnce(node)]).toEqual([3, 4]);
    expect(node.logged()).toEqual([GONE]);
    expect(node.counters.isShared()).toBe(false);

    redis.process.kill('SIGCONT');
    await vi.waitFor(() => expect(node.logged()).toEqual([GONE, BACK]));
    expect(node.counters.isShared()).toBe(true);
    const now = await node.count();
    expect(now).toBeGreaterThan(3);
    expect([await other.count(), await node.count()]).toEqual([now + 1, now + 2]);
  });

  it.skipIf(!hasRedisServer)('is killed: count in memory, and close without logging', async () => {
    const redis = await givenRedis();
    const node = await givenCounters(redis.url);
    await node.count();

    redis.process.kill('SIGKILL');
    await vi.waitFor(() => expect(node.logged()).toEqual([GONE]));

    expect([await countAtOnce(node), await countAtOnce(node)]).toEqual([1, 2]);
    node.counters.close();
    expect(node.logged()).toEqual([GONE]);
  });

  it.skipIf(!hasRedisServer)('works: a blocked event loop does not count as a timeout', async () => {
    const node = await givenCounters((await givenRedis()).url);
    await node.count();

    const counted = node.count();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);

    expect(await counted).toBe(2);
    expect(node.logged()).toEqual([]);
  });
});

describe.skipIf(!hasRedisServer)('the signal of changes', () => {
  async function givenSignal(url: string) {
    const { counters } = await givenCounters(url);
    const signal = makeChangeSignal(url, counters.publish, pino({ level: 'silent' }));
    cleanups.push(() => signal.close());
    let heard = 0;
    signal.listen(() => {
      heard++;
    });
    return { send: signal.send, heard: () => heard };
  }

  it('reaches the other nodes, not the own one, and also after Redis was frozen', async () => {
    const redis = await givenRedis();
    const [node, other] = [await givenSignal(redis.url), await givenSignal(redis.url)];
    // Sent again and again, since it may not listen yet.
    const reaches = (before: number) =>
      vi.waitFor(
        () => {
          node.send();
          expect(other.heard()).toBeGreaterThan(before);
        },
        { timeout: 30_000 },
      );

    await reaches(0);
    redis.process.kill('SIGSTOP');
    redis.process.kill('SIGCONT');
    await reaches(other.heard());

    expect(node.heard()).toBe(0);
  });

  it('of a burst is a message at its beginning and one at its end', async () => {
    const published: string[] = [];
    const signal = makeChangeSignal(
      'redis://127.0.0.1:1',
      (channel) => published.push(channel),
      pino({ level: 'silent' }),
    );
    cleanups.push(() => signal.close());

    for (let change = 0; change < 100; change++) signal.send();

    expect(published).toHaveLength(1);
    await vi.waitFor(() => expect(published).toHaveLength(2));
  });
});
