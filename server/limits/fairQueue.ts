export type FairQueue = {
  /** Does the work when it is the key's turn; throws what `refuse` makes when too much waits, or when it waited too long. */
  run: <Result>(key: string, work: () => Promise<Result>, options?: RunOptions) => Promise<Result>;
};

/** How long to wait while only work of the same key is in the way; as long as for others when not said. */
type RunOptions = { longestWaitForOwnMilliseconds?: number };

type Options = {
  /** How much runs at once, of all keys and of one. */
  running: number;
  runningPerKey: number;
  /** How much waits at once, of all keys and of one. */
  waiting: number;
  waitingPerKey: number;
  /** Without it, work waits for as long as it takes. */
  longestWaitMilliseconds?: number;
  refuse: () => Error;
};

type Line = { running: number; waiting: Set<Waiter> };
type Waiter = { admit: () => void; refuse: () => void; timer: NodeJS.Timeout | undefined };

/** Of a line in which nobody has waited yet, as most never do. */
const NOBODY = new Set<Waiter>();

/**
 * Limits work that is done at once. Keys take turns, so that one with much to do delays the others by no more than one
 * piece of work each.
 */
export function makeFairQueue(options: Options): FairQueue {
  const lines = new Map<string, Line>();
  /** Lines that wait and may run more; the first one is next. */
  const ready = new Set<Line>();
  let running = 0;
  let waiting = 0;

  return {
    run: async (key, work, { longestWaitForOwnMilliseconds = 0 } = {}) => {
      const line = lines.get(key) ?? { running: 0, waiting: NOBODY };
      lines.set(key, line);
      try {
        // Where a slot is free, nobody who may use it waits.
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

  /** Where all places are taken, the longest line loses its last waiter: many keys with a few each shut nobody out. */
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
    // To the end of the round, if it may run more.
    ready.delete(next);
    if (next.waiting.size > 0 && mayRun(next)) ready.add(next);
    first!.admit();
  }
}
