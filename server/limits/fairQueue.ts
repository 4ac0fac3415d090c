export type FairQueue = {
  /** Runs the work when it is the key's turn; throws `refuse()` if the queue is full or the wait was too long. */
  run: <Result>(key: string, work: () => Promise<Result>, options?: RunOptions) => Promise<Result>;
  /** How much work runs and waits at the moment. */
  load: () => QueueLoad;
};

export type QueueLoad = { running: number; waiting: number };

/** How long work may wait for work of its own key; `longestWaitMilliseconds` by default. */
type RunOptions = { longestWaitForOwnMilliseconds?: number };

type Options = {
  /** The maximum of running work, in total and per key. */
  running: number;
  runningPerKey: number;
  /** The maximum of waiting work, in total and per key. */
  waiting: number;
  waitingPerKey: number;
  /** Without it, work waits forever. */
  longestWaitMilliseconds?: number;
  refuse: () => Error;
};

type Line = { running: number; waiting: Set<Waiter> };
type Waiter = { admit: () => void; refuse: () => void; timer: NodeJS.Timeout | undefined };

/** The initial value for lines, most of which never have a waiter. */
const NOBODY = new Set<Waiter>();

/**
 * Limits concurrent work. Keys take turns, so that a key with much work delays each other key by at most one piece of work.
 */
export function makeFairQueue(options: Options): FairQueue {
  const lines = new Map<string, Line>();
  /** Lines with waiters that may run; the first one is next. */
  const ready = new Set<Line>();
  let running = 0;
  let waiting = 0;

  return {
    load: () => ({ running, waiting }),
    run: async (key, work, { longestWaitForOwnMilliseconds = 0 } = {}) => {
      const line = lines.get(key) ?? { running: 0, waiting: NOBODY };
      lines.set(key, line);
      try {
        // A free slot means that every waiting key is at its own limit.
        if (running < options.running && mayRun(line)) enter(line);
        else await turn(line, performance.now() + longestWaitForOwnMilliseconds);
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

  function mayRun(line: Line): boolean {
    return line.running < options.runningPerKey;
  }

  function enter(line: Line): void {
    running++;
    line.running++;
  }

  function turn(line: Line, latestForOwn: number): Promise<void> {
    if (line.waiting.size >= options.waitingPerKey) throw options.refuse();
    if (waiting >= options.waiting) makeRoomFor(line);
    return new Promise((admit, reject) => {
      const refuse = () => {
        removeWaiter(line, waiter);
        if (line.waiting.size === 0) ready.delete(line);
        reject(options.refuse());
      };
      const waiter: Waiter = { admit, refuse, timer: undefined };
      const giveUp = () => {
        if (!mayRun(line) && performance.now() < latestForOwn) wait();
        else refuse();
      };
      const wait = () => {
        if (options.longestWaitMilliseconds === undefined) return;
        waiter.timer = setTimeout(giveUp, options.longestWaitMilliseconds);
      };
      wait();
      if (line.waiting === NOBODY) line.waiting = new Set();
      line.waiting.add(waiter);
      waiting++;
      if (mayRun(line)) ready.add(line);
    });
  }

  /** In a full queue the longest line loses its last waiter, so that keys with few waiters can't be locked out. */
  function makeRoomFor(line: Line): void {
    let longest = line;
    for (const other of lines.values()) if (other.waiting.size > longest.waiting.size) longest = other;
    if (longest.waiting.size <= line.waiting.size + 1) throw options.refuse();
    [...longest.waiting].at(-1)!.refuse();
  }

  function removeWaiter(line: Line, waiter: Waiter): void {
    clearTimeout(waiter.timer);
    line.waiting.delete(waiter);
    waiting--;
  }

  function leave(line: Line): void {
    running--;
    line.running--;
    if (line.waiting.size > 0) ready.add(line);

    const [next] = ready;
    if (!next) return;
    const [first] = next.waiting;
    removeWaiter(next, first!);
    enter(next);
    // To the end of the round, if it may run again.
    ready.delete(next);
    if (next.waiting.size > 0 && mayRun(next)) ready.add(next);
    first!.admit();
  }
}
