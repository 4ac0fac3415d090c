import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMessages } from '../../client/sse.ts';
import { post } from '../faults/request.ts';
import { makeWorld } from '../faults/world.ts';
import {
  givenDirectory,
  removeProcesses,
  runToEnd,
  type StartedService,
  startService,
  statusOf,
} from '../harness/process.ts';
import { findTestServer, type ServerDatabase } from '../harness/server.ts';
import { givenFilledDatabase } from '../harness/serverTemplates.ts';

const server = await findTestServer();
const JWT_SECRET = 'a secret for tests that nobody else uses';
const METRICS_TOKEN = 'a-token-for-prometheus';
const LIST = '/api/services/operations/v1/operations/boards/list';
const STREAM = '/api/services/platforms/v1/events/stream';
const CREATE = '/api/services/operations/v1/operations/cards/create';
const AUTHENTICATE = '/api/v1/authenticate';
const WAIT = { timeout: 30_000 };

/** Errors that no request handler sees, caused by a signal. */
const FAULT = `process.on('SIGUSR2', () => { throw new Error('outside any request') });`;

afterAll(removeProcesses);

/** The next event of a stream; messages without data only keep it open. */
async function nextEvent(messages: ReturnType<typeof readMessages>) {
  for (;;) {
    const { value, done } = await messages.next();
    if (done) throw new Error('The stream has ended.');
    if (value.data !== '') return JSON.parse(value.data);
  }
}

it('WORKERS=2 on the embedded database does not start, and says why', async () => {
  const ended = await runToEnd(['server/boot/main.js'], { WORKERS: '2', DATA_DIR: await givenDirectory() });

  expect(ended).toMatchObject({
    code: 1,
    stdout: '',
    stderr:
      'Deckhand did not start. WORKERS: must be 1 without DATABASE_URL: only one process can use the embedded database.\n',
  });
});

describe.skipIf(!server.url)('two workers', { timeout: 120_000 }, () => {
  let database: ServerDatabase;
  const settings = { DATABASE_URL: '', JWT_SECRET, METRICS_TOKEN, WORKERS: '2' };
  const start = (more: Record<string, string> = {}) => startService({ ...settings, ...more });

  let service: StartedService;
  beforeAll(async () => {
    database = await givenFilledDatabase('workers', 'migrated');
    settings.DATABASE_URL = database.url;
    service = await start({
      RATE_LIMIT_PER_MINUTE: '60',
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(FAULT)}`,
    });
  });
  afterAll(async () => {
    await service.stop();
    await database.remove();
  });

  it('print one address and each warning once, and both answer', async () => {
    await callersByWorker(service);

    const lines = linesOf(service.printed());
    expect(lines.filter(({ msg }) => msg.includes(' listens on '))).toMatchObject([
      { url: service.url, workers: 2, connectionsPerWorker: 10 },
    ]);
    expect(lines.filter(({ msg }) => msg.startsWith('Payments are not set up'))).toHaveLength(1);
    expect(workersIn(service.printed(), 'answered')).toEqual(workersIn(service.printed(), 'Worker started.'));
  });

  it('429 after exactly RATE_LIMIT_PER_MINUTE calls', async () => {
    const replies = await Promise.all(callersFrom(3, 100).map(({ call }) => call(service.url + LIST)));

    expect(statusesOf(replies)).toEqual({ 401: 60, 429: 40 });
    const remaining = replies.flatMap(({ status, headers }) =>
      status === 401 ? headers['x-ratelimit-remaining'] : [],
    );
    expect(remaining.map(Number).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, left) => left));
  });

  it('429 after exactly 10 failed sign-ins', async () => {
    const wrong = { email: 'somebody@example.test', password: 'wrong' };
    const statuses: unknown[] = [];

    for (const { call } of callersFrom(4, 12)) statuses.push((await call(service.url + AUTHENTICATE, wrong)).status);

    expect(statuses).toEqual([...Array(10).fill(401), 429, 429]);
  });

  it('a change by one of them reaches the event streams of both', async () => {
    const { clients } = await makeWorld(settings);
    const { token, groups } = clients[0]!;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' };
    const closing = new AbortController();
    const followed = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const { body } = await fetch(`${service.url}${STREAM}`, { headers, signal: closing.signal });
        const messages = readMessages(body!);
        await messages.next();
        return messages;
      }),
    );

    const body = JSON.stringify({ title: 'A card', group_id: groups[0] });
    const created = await fetch(`${service.url}${CREATE}`, { method: 'POST', headers, body });

    expect(created.status).toBe(201);
    const card = (await created.json()).data.card.id;
    const first = await Promise.all(followed.map(async (messages) => (await nextEvent(messages)).subject_id));
    expect(first).toEqual(Array(8).fill(card));
    closing.abort();
  });

  it('a killed one is replaced: only its own connections break, and no count goes backwards', async () => {
    const before = await scrape(service.url);
    const [killed] = workersOf(service.pid);
    const [first, ...others] = await callersByWorker(service);
    const callers = [...first!, ...others.flat()];
    const calling = Promise.all(
      callers.map(async ({ call }) => {
        const statuses: (number | undefined)[] = [];
        while (statuses.length < 40) statuses.push((await call(service.url + LIST)).status);
        return statuses;
      }),
    );
    await expect.poll(() => service.printed().split('"answered"').length, WAIT).toBeGreaterThan(300);
    process.kill(killed!, 'SIGKILL');

    const statuses = await calling;

    // Whoever was connected to the killed one lost one request; nobody waits, and the next request works.
    expect(statuses.flat().filter((status) => status !== 401 && status !== undefined)).toEqual([]);
    expect(Math.max(...statuses.map((all) => all.filter((status) => status === undefined).length))).toBeLessThan(2);
    const after = await scrape(service.url);
    expect(others.flat().length).toBeGreaterThan(0);
    expect(statuses.slice(first!.length).flat()).not.toContain(undefined);
    expect(before.size).toBeGreaterThan(50);
    expect([...before].filter(([series, count]) => (after.get(series) ?? 0) < count)).toEqual([]);
    await expect.poll(async () => (await scrape(service.url, ['gauge'])).get('deckhand_workers'), WAIT).toBe(2);
    expect(after.get('deckhand_worker_replacements_total')).toBe(1);
    expect(workersOf(service.pid)).not.toContain(killed);
  });

  it('one with an error outside any request is replaced, and the node stays ready', async () => {
    await expect.poll(async () => (await scrape(service.url, ['gauge'])).get('deckhand_workers'), WAIT).toBe(2);
    const [failing] = workersOf(service.pid);

    process.kill(failing!, 'SIGUSR2');

    await expect.poll(() => workersOf(service.pid).includes(failing!), WAIT).toBe(false);
    // The output of a process arrives after its end.
    await expect.poll(() => service.printed(), WAIT).toMatch(/Worker \d+ ended with exit code 1: another one starts/);
    await expect.poll(() => service.printed(), WAIT).toMatch(/"level":60.*An error outside any request/);
    expect(service.printed()).not.toContain('Stopping.');
    expect(await statusOf(service.url, '/health/ready')).toBe(200);
  });

  it('end with their parent, after kill -9 and after a second signal', async () => {
    const [killed, hasty] = await Promise.all([start(), start({ STOP_PAUSE_SECONDS: '60' })]);
    const workers = [killed, hasty].flatMap(({ pid }) => workersOf(pid));
    expect(workers).toHaveLength(4);

    await killed.stop('SIGKILL');
    const asked = hasty.stop('SIGTERM');
    await expect.poll(() => statusOf(hasty.url, '/health/ready'), WAIT).toBe(503);
    // One that comes soon after the first is taken for the same.
    const signals = setInterval(() => void hasty.stop('SIGTERM'), 100);

    expect(await asked).toMatchObject({ code: 130, stderr: '' });
    clearInterval(signals);
    await expect.poll(() => workers.filter(isRunning), WAIT).toEqual([]);
  });

  it('exit code 1 if one is killed while they stop, after the other has served its requests', async () => {
    const { url, pid, stop } = await start({ STOP_PAUSE_SECONDS: '1' });
    const [killed] = workersOf(pid);

    const ended = stop('SIGTERM');
    await expect.poll(() => statusOf(url, '/health/ready'), WAIT).toBe(503);
    process.kill(killed!, 'SIGKILL');

    expect(await statusOf(url, '/health/live')).toBe(200);
    const { code, stdout } = await ended;
    expect(code).toBe(1);
    expect(stdout).toMatch(/Worker \d was ended by SIGKILL while it stopped\./);
  });

  it('a worker that does not start ends the service with one line', async () => {
    const ended = await runToEnd(['server/boot/main.js'], { ...settings, PORT: new URL(service.url).port });

    expect(ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Deckhand did not start\. PORT: .*in use.*\n$/),
    });
  });
});

type Reply = Awaited<ReturnType<typeof post>> & { headers?: Record<string, unknown> };
type Caller = { call: (url: string, body?: object) => Promise<Reply & { headers: Record<string, any> }> };

/** Callers of one address, each with a connection of its own. */
const callersFrom = (host: number, count: number): Caller[] =>
  Array.from({ length: count }, () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: `127.0.0.${host}` });
    return { call: (url, body = {}) => post(url, agent, undefined, body) as ReturnType<Caller['call']> };
  });

/**
 * Connected callers by their worker, the oldest worker first: 20 at a time, until both workers have some. Each has an address of
 * its own, since 60 calls are the limit.
 */
async function callersByWorker({ url, printed }: StartedService): Promise<Caller[][]> {
  const byWorker = new Map<number, Caller[]>();
  for (let host = 10; host < 250 && byWorker.size < 2; host += 20) {
    const callers = Array.from({ length: 20 }, (_, index) => callersFrom(host + index, 1)[0]!);
    await Promise.all(
      callers.map(async (caller) => {
        const { headers } = await caller.call(url + LIST);
        const workerOf = () =>
          linesOf(printed()).find(({ reqId, msg }) => reqId === headers['x-request-id'] && msg === 'answered')?.worker;
        await expect.poll(workerOf, WAIT).toBeTypeOf('number');
        byWorker.set(workerOf()!, [...(byWorker.get(workerOf()!) ?? []), caller]);
      }),
    );
  }
  return [...byWorker].toSorted(([one], [other]) => one - other).map(([, callers]) => callers);
}

const statusesOf = (replies: Reply[]) => {
  const statuses: Record<string, number> = {};
  for (const { status } of replies) statuses[String(status)] = (statuses[String(status)] ?? 0) + 1;
  return statuses;
};

const linesOf = (printed: string): { msg: string; worker?: number; reqId?: string }[] =>
  printed
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line));

const workersIn = (printed: string, message: string) =>
  [...new Set(linesOf(printed).flatMap(({ msg, worker }) => (msg === message ? worker : [])))].toSorted();

/** The process ids of the workers, the oldest first. */
const workersOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The values by series, of metrics of these types. */
async function scrape(url: string, types = ['counter', 'histogram']): Promise<Map<string, number>> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  const blocks = (await response.text()).split(/^# HELP /m).filter((block) => types.includes(typeOf(block)));
  const series = blocks.flatMap((block) => [...block.matchAll(/^([^#]\S*) (\S+)$/gm)]);
  return new Map(series.map(([, name = '', value]) => [name, Number(value)]));
}

const typeOf = (block: string) => /^# TYPE \S+ (\w+)$/m.exec(block)?.[1] ?? '';
