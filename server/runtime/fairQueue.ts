import type { Leaving } from './leaving.ts';

export type FairQueue = {
  /** Runs the work when it is the key's turn; throws `refuse()` if the queue is full or the wait was too long. */
  run: <Result>(key: string, work: () => Promise<Result>, options?: RunOptions) => Promise<Result>;
  /** How much work runs and waits at the moment. */
  load: () => QueueLoad;
};

export type QueueLoad = { running: number; waiting: number };

type RunOptions = {
  /** How long work may wait for work of its own key; `longestWaitMilliseconds` by default. */
  longestWaitForOwnMilliseconds?: number;
  /** Whether the key waits for all others, and loses its place to them in a full queue. */
  goesLast?: boolean;
  /** When nobody wants the result any more, work that still waits is refused, and work that began goes on. */
  leaving?: Leaving | undefined;
};

type Options = {
  /** The maximum of running work, in total and per key. */
  running: number;
  runningPerKey: number;
  /** The maximum of waiting work, in total and per key. */
  waiting: number;
  waitingPerKey: number;
  /** Without it, work waits forever. */
  longestWaitMilliseconds?: number;
  /** The error of refused work: `isOwn` if only work of the same key was in its way. */
  refuse: (isOwn: boolean) => Error;
};

type Line = { running: number; waiting: Set<Waiter>; goesLast: boolean };
type Waiter = {
  admit: () => void;
  refuse: (isOwn?: boolean) => void;
  /** When its caller leaves. */
  leave: () => void;
  timer: NodeJS.Timeout | undefined;
  leaving: Leaving | undefined;
};

/** The initial value for lines, most of which never have a waiter. */
const NOBODY = new Set<Waiter>();

/**
 * Limits concurrent work. Keys take turns, so that a key with much work delays each other key by at most one piece of work.
 */
export function makeFairQueue(options: Options): FairQueue {
  const lines = new Map<string, Line>();
  /** Lines with waiters that may run; the first one is next. */
  const ready = new Set<Line>();
  /** Of those that go last, while there is no other. */
  const readyLast = new Set<Line>();
  let running = 0;
  let waiting = 0;

  return {
    load: () => ({ running, waiting }),
    run: async (key, work, own = {}) => {
      const { longestWaitForOwnMilliseconds = 0, goesLast = false } = own;
      const line = lines.get(key) ?? { running: 0, waiting: NOBODY, goesLast };
      lines.set(key, line);
      if (line.goesLast !== goesLast) changePlace(line, goesLast);
      try {
        // A free slot means that every waiting key is at its own limit.
        if (running < options.running && mayRun(line)) enter(line);
        else await turn(line, performance.now() + longestWaitForOwnMilliseconds, own.leaving);
        try {
          return await work();
        } finally {
          leave(line);
        }
      } finally {
        if (line.running === 0 && line.waiting.size === 0 && lines.get(key) === line) lines.delete(key);
      }
    },
  };

  function readyOf(line: Line): Set<Line> {
    return line.goesLast ? readyLast : ready;
  }

  function changePlace(line: Line, goesLast: boolean): void {
    const isReady = readyOf(line).delete(line);
    line.goesLast = goesLast;
    if (isReady) readyOf(line).add(line);
  }

  function mayRun(line: Line): boolean {
    return line.running < options.runningPerKey;
  }

  function enter(line: Line): void {
    running++;
    line.running++;
  }

  function turn(line: Line, latestForOwn: number, leaving: Leaving | undefined): Promise<void> {
    if (leaving?.isGone || line.waiting.size >= options.waitingPerKey) throw options.refuse(true);
    if (waiting >= options.waiting) makeRoomFor(line);
    return new Promise((admit, reject) => {
      const refuse = (isOwn = false) => {
        removeWaiter(line, waiter);
        if (line.waiting.size === 0) readyOf(line).delete(line);
        reject(options.refuse(isOwn));
      };
      const leave = () => refuse(true);
      const waiter: Waiter = { admit, refuse, leave, timer: undefined, leaving };
      leaving?.add(leave);
      const giveUp = () => {
        if (!mayRun(line) && performance.now() < latestForOwn) wait();
        else refuse(!mayRun(line));
      };
      const wait = () => {
        if (options.longestWaitMilliseconds === undefined) return;
        waiter.timer = setTimeout(giveUp, options.longestWaitMilliseconds);
      };
      wait();
      if (line.waiting === NOBODY) line.waiting = new Set();
      line.waiting.add(waiter);
      waiting++;
      if (mayRun(line)) readyOf(line).add(line);
    });
  }

  /**
   * In a full queue the longest line loses its last waiter, so that keys with few waiters can't be locked out. Lines that go last
   * lose theirs first, however short they are, and never take the place of others.
   */
  function makeRoomFor(line: Line): void {
    const last = longestLine(true);
    const longest = last.waiting.size > 0 || line.goesLast ? last : longestLine(false);
    const isBehind = longest.goesLast && !line.goesLast;
    if (!isBehind && longest.waiting.size <= line.waiting.size + 1) throw options.refuse(false);
    [...longest.waiting].at(-1)?.refuse();
  }

  function longestLine(goesLast: boolean): Line {
    let longest: Line = { running: 0, waiting: NOBODY, goesLast };
    for (const line of lines.values()) {
      if (line.goesLast === goesLast && line.waiting.size > longest.waiting.size) longest = line;
    }
    return longest;
  }

  function removeWaiter(line: Line, waiter: Waiter): void {
    clearTimeout(waiter.timer);
    waiter.leaving?.remove(waiter.leave);
    line.waiting.delete(waiter);
    waiting--;
  }

  function leave(line: Line): void {
    running--;
    line.running--;
    if (line.waiting.size > 0) readyOf(line).add(line);

    const [next] = ready.size > 0 ? ready : readyLast;
    const [first] = next?.waiting ?? [];
    if (!next || !first) return;
    removeWaiter(next, first);
    enter(next);
    // To the end of the round, if it may run again.
    readyOf(next).delete(next);
    if (next.waiting.size > 0 && mayRun(next)) readyOf(next).add(next);
    first.admit();
  }
}
