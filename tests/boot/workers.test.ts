import cluster, { type Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { WorkerCalls } from '../../server/boot/workers/calls.ts';
import { startWorkers } from '../../server/boot/workers/parent.ts';
import { type Pinged, pingAll } from '../../server/boot/workers/pings.ts';
import { type Member, shareAmong } from '../../server/boot/workers/shared.ts';
import { type Calls, openChannel } from '../../server/runtime/channel.ts';
import type { Settings } from '../../server/runtime/env.ts';
import type { Log } from '../../server/runtime/log.ts';

// The delays before replacements take no time.
vi.mock('node:timers/promises', async (original) => ({ ...(await original<object>()), setTimeout: vi.fn() }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.mocked(setTimeout).mockClear();
});

/** The parent with workers whose messages are recorded. */
function givenParent(...ids: number[]) {
  const members = new Map<number, Member>();
  const told: unknown[] = [];
  const shared = shareAmong(members, ids.length);
  for (const id of ids) {
    members.set(id, {
      channel: {
        ask: async () => '[]' as never,
        tell: (name: string, value?: object) => void told.push([id, name, value]),
        receive: () => undefined,
      },
      ...{ isReady: true, gone: Promise.withResolvers<void>(), metrics: undefined },
      ...{ unsent: new Map(), tickets: new Map() },
    });
  }
  const end = (id: number) => {
    const member = members.get(id)!;
    members.delete(id);
    shared.release(member);
  };
  return { members, told, end, worker: shared.callsOf };
}

/** Two workers that start, whose processes are fakes. */
function givenStart() {
  const forked: EventEmitter[] = [];
  const logged: string[] = [];
  const giveUp = vi.fn();
  vi.spyOn(cluster, 'fork').mockImplementation(() => {
    const worker = Object.assign(new EventEmitter(), {
      ...{ id: forked.length + 1, isConnected: () => true },
      process: { kill: (signal: string) => worker.emit('exit', null, signal) },
      send: (messages: { name?: string; id?: number }[]) => {
        for (const { name, id } of messages) {
          if (name === 'stop') worker.emit('exit', 0, null);
          if (name === 'ping') worker.emit('message', [{ id }]);
        }
      },
    });
    forked.push(worker);
    return worker as unknown as Worker;
  });
  const log = { error: (line: string) => logged.push(line) } as unknown as Log;
  const started = startWorkers({ WORKERS: 2, STOP_PAUSE_SECONDS: 0 } as Settings, log, giveUp);
  const change = async (id: number, ...event: [name: string, ...values: unknown[]]) => {
    forked[id - 1]!.emit(...event);
    await someTurns();
  };
  return {
    ...{ started, forked, logged, giveUp },
    becomeReady: (id: number) => change(id, 'message', [{ name: 'ready', value: `http://worker-${id}` }]),
    kill: (id: number) => change(id, 'exit', null, 'SIGKILL'),
    fail: (id: number) => change(id, 'exit', 1, null),
  };
}

async function someTurns() {
  for (let turn = 0; turn < 5; turn++) await setImmediate();
}

/** What a promise has become by now. */
async function stateOf<Result>(promise: Promise<Result>): Promise<Result | 'waits'> {
  await someTurns();
  return Promise.race([promise, Promise.resolve('waits' as const)]);
}

describe('pings', () => {
  /** A worker whose event loop turns, or not. */
  const givenPinged = (isHanging: boolean): Pinged => {
    const worker = openChannel<Calls>((messages) => parent.receive(messages), { ping: () => undefined });
    const parent = openChannel<WorkerCalls>((messages) => !isHanging && worker.receive(messages), {});
    return { channel: parent, isReady: true, missedPings: 0, readyBy: Number.POSITIVE_INFINITY };
  };

  it('find a worker that hangs, never one that is idle, nor one that starts', async () => {
    const starting = { ...givenPinged(true), isReady: false };
    const workers = new Map([
      ['idle', givenPinged(false)],
      ['hanging', givenPinged(true)],
      ['starting', starting],
    ]);
    const found: ReturnType<typeof pingAll>[] = [];

    for (let second = 0; second < 31; second++) {
      found.push(pingAll(workers));
      await someTurns();
    }

    expect(found).toEqual([...Array(30).fill([]), [['hanging', 'has not reacted for 30 seconds']]]);
  });

  it('find a worker that is not ready in time, or does not react for as long while it starts', async () => {
    const workers = new Map<string, Pinged>([
      ['slow', { ...givenPinged(false), isReady: false, readyBy: 120_000 }],
      ['migrating', { ...givenPinged(false), isReady: false }],
      ['frozen', { ...givenPinged(true), isReady: false, missedPings: 119 }],
    ]);

    expect(pingAll(workers, 119_999)).toEqual([]);
    await someTurns();

    expect(pingAll(workers, 120_000)).toEqual([
      ['slow', 'is not ready after 120 seconds'],
      ['frozen', 'has not reacted for 120 seconds'],
    ]);
  });
});

describe('a worker that ends during the start of the node', () => {
  it('after it was ready is replaced, and so is a replacement that fails', async () => {
    const { started, forked, logged, becomeReady, kill, fail } = givenStart();
    await becomeReady(1);

    await kill(1);
    await fail(3);
    await becomeReady(2);

    const { url, stop } = await started;
    expect(url).toBe('http://worker-1');
    expect(forked).toHaveLength(4);
    expect(logged).toEqual([
      'Worker 1 was ended by SIGKILL: another one starts.',
      'Worker 3 ended with exit code 1: another one starts in 1 seconds.',
    ]);
    await stop();
  });

  it('before it was ready ends the start', async () => {
    const { started, forked, becomeReady, kill } = givenStart();
    const failure = expect(started).rejects.toThrow('Worker 2 was ended by SIGKILL.');
    await becomeReady(1);

    await kill(2);

    await failure;
    expect(forked).toHaveLength(2);
  });
});

describe('a worker that hangs before it is ready', () => {
  it('is killed and replaced, with a line and a pause, and the start goes on', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const passSeconds = async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        vi.advanceTimersByTime(1000);
        await someTurns();
      }
    };
    const { started, forked, logged, becomeReady } = givenStart();
    await becomeReady(1);

    await passSeconds(121);
    expect(logged).toEqual([
      'Worker 2 is not ready after 120 seconds: it is killed.',
      'Worker 2 was ended by SIGKILL: another one starts.',
    ]);
    await passSeconds(121);
    await becomeReady(4);

    const { stop } = await started;
    expect(logged.slice(2)).toEqual([
      'Worker 3 is not ready after 120 seconds: it is killed.',
      'Worker 3 was ended by SIGKILL: another one starts in 1 seconds.',
    ]);
    expect(forked).toHaveLength(4);
    await stop();
  });
});

describe('a worker whose replacements do not start', () => {
  it('is replaced again and again while another one serves; without one the node gives up', async () => {
    const { started, forked, logged, giveUp, becomeReady, kill, fail } = givenStart();
    await becomeReady(1);
    await becomeReady(2);
    const { stop } = await started;

    await kill(2);
    for (let id = 3; id <= 12; id++) await fail(id);

    expect(vi.mocked(setTimeout).mock.calls.flat()).toEqual([
      ...[0, 1000, 2000, 4000, 8000, 16_000],
      ...[30_000, 30_000, 30_000, 30_000, 30_000],
    ]);
    expect(forked).toHaveLength(13);
    expect(giveUp).not.toHaveBeenCalled();

    await kill(1);

    expect(giveUp).toHaveBeenCalledOnce();
    expect(logged.at(-1)).toBe('Worker 1 was ended by SIGKILL, like those before it: the service stops.');
    await stop();
  });
});

describe('what workers share', () => {
  it('counts of one key are one count', async () => {
    const { worker } = givenParent(1, 2);
    const count = (id: number, method: 'get' | 'penalty' | 'reward', calls?: number) =>
      worker(id).count({ counter: ['limit', 10, 60], method, key: 'user:1', calls });

    expect(await count(1, 'get')).toBeNull();
    expect(await count(1, 'penalty', 3)).toMatchObject({ consumedPoints: 3 });
    expect(await count(2, 'penalty')).toMatchObject({ consumedPoints: 4 });
    expect(await count(1, 'reward', 2)).toMatchObject({ consumedPoints: 2 });
    expect(await count(2, 'get')).toMatchObject({ consumedPoints: 2, msBeforeNext: expect.any(Number) });
  });

  it('password checks: two at once in all, a full queue refuses, and a dead worker frees its place', async () => {
    const { worker, end } = givenParent(1, 2);
    const enter = (id: number, ticket: number) => worker(id).enterPasswords({ ticket, key: 'a', goesLast: false });
    const [first, second, third, fourth] = [enter(1, 1), enter(2, 1), enter(2, 2), enter(1, 2)];
    const waiting = Array.from({ length: 8 }, (_, more) => enter(2, 3 + more));

    expect(await Promise.all([first, second, third, fourth].map(stateOf))).toEqual([true, true, 'waits', 'waits']);
    expect(await enter(1, 99)).toBe(false);

    worker(2).leavePasswords(1);
    expect(await Promise.all([third, fourth].map(stateOf))).toEqual([true, 'waits']);

    // Its running check ends, and its waiting one is skipped.
    end(1);
    expect(await Promise.all([fourth, waiting[0]!, waiting[1]!].map(stateOf))).toEqual(['waits', true, 'waits']);
  });

  it('unsent responses: each worker knows the sum of the others, also after one has ended', () => {
    const { worker, told, end } = givenParent(1, 2, 3);

    worker(1).unsent({ key: 'user:1', bytes: 100 });
    worker(2).unsent({ key: 'user:1', bytes: 20 });
    const sums = (bytes: number[]) =>
      bytes.map((sum, index) => [index + 1, 'unsentElsewhere', { key: 'user:1', bytes: sum }]);
    expect(told).toEqual([...sums([0, 100, 100]), ...sums([20, 100, 120])]);

    told.length = 0;
    end(3);
    end(2);
    expect(told).toEqual([[1, 'unsentElsewhere', { key: 'user:1', bytes: 0 }]]);
  });

  it('steps of the stop: the last one opens the gate, and nobody waits for the dead', async () => {
    const { worker, end } = givenParent(1, 2, 3);
    const waits = [worker(1).arrive('quiet'), worker(2).arrive('quiet')];
    expect(await Promise.all(waits.map(stateOf))).toEqual(['waits', 'waits']);

    end(3);

    expect(await Promise.all(waits.map(stateOf))).toEqual([undefined, undefined]);
  });
});
