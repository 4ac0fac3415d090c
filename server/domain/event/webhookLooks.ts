/** What a look has found out about the next one. */
export type NextLook = {
  /** Whether an event waits for an older transaction. */
  isWaiting: boolean;
  /** When the next attempt is due, or a lease can be taken over; null if there is none. */
  dueInMilliseconds: number | null;
  /** How many webhooks it had to look at. */
  seen: number;
};

/** Looks by itself at least this often: changes of commands and of other nodes without Redis are noticed so late. */
const LONGEST_PAUSE_MILLISECONDS = 5000;
/** Looks at most this often, and less often with many webhooks: it must not keep the database busy (2 ms, and 4 µs for each). */
const shortestPause = (seen: number) => Math.min(50 + seen / 10, 1000);
/** While an event waits for an older transaction: the first pause, which doubles up to the last one. */
const WAITING_MILLISECONDS = { first: 50, last: 1000 };

/** Looks when it is woken, when something is due, and otherwise now and then. */
export function startLooks(look: () => Promise<NextLook>, longestPause = LONGEST_PAUSE_MILLISECONDS) {
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let isWoken = false;
  let isStopped = false;
  let nextAllowed = 0;
  let waitingPause = WAITING_MILLISECONDS.first;

  lookIn(0);
  return { wake, stop };

  /** Looks at once, or as soon as the pause after the last look allows it. */
  function wake(): void {
    waitingPause = WAITING_MILLISECONDS.first;
    if (looking) isWoken = true;
    else lookIn(0);
  }

  function lookIn(milliseconds: number): void {
    if (isStopped) return;
    clearTimeout(timer);
    const pause = Math.max(milliseconds, nextAllowed - performance.now(), 0);
    timer = setTimeout(() => {
      looking = lookOnce();
    }, pause).unref();
  }

  async function lookOnce(): Promise<void> {
    isWoken = false;
    const begun = performance.now();
    const next = await look();
    nextAllowed = begun + shortestPause(next.seen);
    looking = undefined;
    lookIn(isWoken ? 0 : pauseUntil(next));
  }

  function pauseUntil({ isWaiting, dueInMilliseconds }: NextLook): number {
    const pauses = [longestPause, dueInMilliseconds ?? longestPause];
    if (isWaiting) pauses.push(waitingPause);
    waitingPause = isWaiting ? Math.min(waitingPause * 2, WAITING_MILLISECONDS.last) : WAITING_MILLISECONDS.first;
    return Math.min(...pauses);
  }

  /** Waits for the look that is under way. */
  async function stop(): Promise<void> {
    isStopped = true;
    clearTimeout(timer);
    await looking;
  }
}
