import { makeLooks } from '../../runtime/looks.ts';

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
  let waitingPause = WAITING_MILLISECONDS.first;
  const looks = makeLooks(async () => {
    const next = await look();
    return { pause: pauseUntil(next), shortest: shortestPause(next.seen) };
  });
  looks.begin(0);
  return {
    wake: () => {
      waitingPause = WAITING_MILLISECONDS.first;
      looks.wake();
    },
    stop: looks.stop,
  };

  function pauseUntil({ isWaiting, dueInMilliseconds }: NextLook): number {
    const pauses = [longestPause, dueInMilliseconds ?? longestPause];
    if (isWaiting) pauses.push(waitingPause);
    waitingPause = isWaiting ? Math.min(waitingPause * 2, WAITING_MILLISECONDS.last) : WAITING_MILLISECONDS.first;
    return Math.min(...pauses);
  }
}
