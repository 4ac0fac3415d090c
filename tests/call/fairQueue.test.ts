import { describe, expect, it, vi } from 'vitest';
import { makeFairQueue } from '../../server/runtime/fairQueue.ts';
import { Leaving } from '../../server/runtime/leaving.ts';
import { fakeTimers } from '../harness/timers.ts';

const FULL = new Error('full');
const LIMITS = { running: 2, runningPerKey: 2, waiting: 100, waitingPerKey: 100, refuse: () => FULL };

type RunOptions = NonNullable<Parameters<ReturnType<typeof makeFairQueue>['run']>[2]>;

/** A queue whose work ends when the test says so. */
function givenQueue(options: Partial<Parameters<typeof makeFairQueue>[0]> = {}) {
  const queue = makeFairQueue({ ...LIMITS, ...options });
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  /** Work named `a1` belongs to the key `a`; keys in upper case go last. */
  const run = (name: string, { goesLast = /[A-Z]/.test(name), leaving }: RunOptions = {}) =>
    queue.run(
      name[0]!,
      () =>
        new Promise<string>((resolve) => {
          started.push(name);
          ends.set(name, () => resolve(name));
        }),
      { goesLast, leaving },
    );
  /** Waits for one turn of the event loop. */
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  const end = async (name: string) => {
    ends.get(name)!();
    await settle();
  };
  /** Queues work, and returns the order in which all of it starts. */
  const orderOf = async (...names: string[]) => {
    for (const name of names) void run(name);
    await settle();
    for (let at = 0; at < started.length; at++) await end(started[at]!);
    return started;
  };
  return { queue, run, started, end, settle, orderOf };
}

describe('a fair queue', () => {
  it('tells how much runs and waits', async () => {
    const { queue, run, end } = givenQueue({ running: 1 });
    const work = [run('a1'), run('b1')];

    expect(queue.load()).toEqual({ running: 1, waiting: 1 });
    for (const name of ['a1', 'b1']) await end(name);
    await Promise.all(work);
    expect(queue.load()).toEqual({ running: 0, waiting: 0 });
  });

  it('refuses waiting work whose caller has left, and lets running work go on', async () => {
    const { queue, run, started, end } = givenQueue({ running: 1 });
    const caller = new Leaving();
    const work = run('a1', { leaving: caller });
    const waiting = run('a2', { leaving: caller });
    const other = run('b1');

    caller.leave();

    await expect(waiting).rejects.toBe(FULL);
    await expect(run('a3', { leaving: caller })).rejects.toBe(FULL);
    expect(queue.load()).toEqual({ running: 1, waiting: 1 });
    await end('a1');
    await end('b1');
    expect(await Promise.all([work, other])).toEqual(['a1', 'b1']);
    expect(started).toEqual(['a1', 'b1']);
  });

  it('returns what the work returns, and throws what it throws', async () => {
    const { queue } = givenQueue({ running: 1 });

    expect(await queue.run('a', async () => 5)).toBe(5);
    await expect(queue.run('a', async () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    const throwing = (): Promise<never> => {
      throw new Error('at once');
    };
    await expect(queue.run('a', throwing)).rejects.toThrow('at once');
    expect(await queue.run('a', async () => 6)).toBe(6);
  });

  it('drops the last of the longest line for another key when the queue is full', async () => {
    const { run, settle, orderOf } = givenQueue({ running: 1, runningPerKey: 1, waiting: 4, waitingPerKey: 3 });
    const refused: string[] = [];

    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'c2']) run(name).catch(() => refused.push(name));
    await settle();

    expect(refused.toSorted()).toEqual(['a4', 'c2']);
    expect((await orderOf()).toSorted()).toEqual(['a1', 'a2', 'a3', 'b1', 'c1']);
  });

  it('runs the work of keys that go last after all other, in turns', async () => {
    const { run, started, end, settle, orderOf } = givenQueue({ running: 1, runningPerKey: 1 });

    for (const name of ['A1', 'A2', 'A3', 'B1', 'c1', 'd1', 'c2']) void run(name);
    await settle();
    for (const at of [0, 1]) await end(started[at]!);

    expect((await orderOf('e1')).join(' ')).toBe('A1 c1 d1 c2 e1 B1 A2 A3');
  });

  it('moves all work of a key that goes last from now on, and back', async () => {
    const { run, orderOf } = givenQueue({ running: 1, runningPerKey: 1 });

    for (const name of ['a1', 'b1', 'c1']) void run(name);
    void run('b2', { goesLast: true });
    void run('D1');
    void run('d2', { goesLast: false });

    expect(await orderOf()).toEqual(['a1', 'c1', 'd2', 'b1', 'D1', 'b2']);
  });

  it('drops work of keys that go last for any other when the queue is full', async () => {
    const { run, settle, orderOf } = givenQueue({ running: 1, runningPerKey: 1, waiting: 3, waitingPerKey: 3 });
    const refused: string[] = [];

    for (const name of 'x1 A1 B1 B2 C1 d1 e1 f1 G1'.split(' ')) run(name).catch(() => refused.push(name));
    await settle();

    expect(refused.toSorted()).toEqual(['A1', 'B1', 'B2', 'C1', 'G1']);
    expect(await orderOf()).toEqual(['x1', 'd1', 'e1', 'f1']);
  });

  it('waits longer, if allowed, when only work of the same key is in the way', async () => {
    fakeTimers('performance');
    const queue = makeFairQueue({ ...LIMITS, running: 3, runningPerKey: 1, longestWaitMilliseconds: 1000 });
    const { promise, resolve } = Promise.withResolvers<void>();
    void queue.run('a', () => promise);

    const impatient = queue.run('a', async () => 'impatient').catch((error) => error);
    const patient = queue.run('a', async () => 'patient', { longestWaitForOwnMilliseconds: 5000 });
    const tooPatient = queue.run('a', () => promise, { longestWaitForOwnMilliseconds: 2000 }).catch((error) => error);
    await vi.advanceTimersByTimeAsync(4000);
    resolve();

    expect(await Promise.all([impatient, patient, tooPatient])).toEqual([FULL, 'patient', FULL]);
  });

  it('runs as much at once as allowed in total and per key', async () => {
    const { run, started, end, settle } = givenQueue({ running: 3, runningPerKey: 2 });

    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) void run(name);
    await settle();
    expect(started).toEqual(['a1', 'a2', 'b1']);

    await end('b1');
    expect(started).toEqual(['a1', 'a2', 'b1', 'b2']);
    await end('b2');
    expect(started).toHaveLength(4);
    await end('a2');
    expect(started.at(-1)).toBe('a3');
  });

  it('lets keys take turns, and keeps the order within a key', async () => {
    const { orderOf } = givenQueue({ running: 1, runningPerKey: 1 });

    expect((await orderOf('a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1')).join(' ')).toBe('a1 b1 c1 a2 b2 a3 a4');
  });

  it('refuses work above the waiting limits per key and in total, and does the rest', async () => {
    const { run, started, end, settle } = givenQueue({ running: 1, runningPerKey: 1, waiting: 3, waitingPerKey: 2 });
    const done = [run('a1'), run('a2'), run('a3')];

    await expect(run('a4')).rejects.toBe(FULL);
    done.push(run('b1'));
    await expect(run('b2')).rejects.toBe(FULL);
    await settle();
    for (const at of [0, 1, 2, 3]) await end(started[at]!);

    expect((await Promise.all(done)).toSorted()).toEqual(['a1', 'a2', 'a3', 'b1']);
    void run('c2');
    await settle();
    expect(started.at(-1)).toBe('c2');
  });

  it('refuses work that waited too long, and frees its place', async () => {
    fakeTimers();
    const { run, started, end, settle } = givenQueue({
      running: 1,
      waiting: 1,
      waitingPerKey: 1,
      longestWaitMilliseconds: 500,
    });
    void run('a1');
    const late = run('a2').catch((error) => error);
    await settle();

    vi.advanceTimersByTime(499);
    await expect(run('b1')).rejects.toBe(FULL);
    vi.advanceTimersByTime(1);
    expect(await late).toBe(FULL);

    const admitted = run('b2');
    await end('a1');
    vi.advanceTimersByTime(10_000);
    await end('b2');
    expect(await admitted).toBe('b2');
    expect(started).toEqual(['a1', 'b2']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('serves 20,000 calls of 1,000 keys, at a cost per call that does not grow with the queue', async () => {
    const { queue } = givenQueue({ waiting: 20_000 });
    const many = Array.from({ length: 20_000 }, (_, at) => at);

    expect(await Promise.all(many.map((at) => queue.run(`key ${at % 1000}`, async () => at)))).toEqual(many);
  });

  it('tells refusals by own work from those by the work of others', async () => {
    const refused: boolean[] = [];
    const refuse = (isOwn: boolean) => {
      refused.push(isOwn);
      return FULL;
    };
    const { run } = givenQueue({ running: 1, runningPerKey: 1, waiting: 2, waitingPerKey: 1, refuse });
    void run('a1');
    void run('a2');

    await expect(run('a3')).rejects.toBe(FULL);
    void run('b1');
    await expect(run('c1')).rejects.toBe(FULL);

    expect(refused).toEqual([true, false]);
  });
});
