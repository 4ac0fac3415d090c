import type { Quota } from './calls.ts';
import type { DeckhandError } from './errors.ts';
import { millisecondsBefore } from './retry.ts';

/** Tracks how many calls the rate limit still allows. */
export type Pace = {
  /** May start a timer, which `wake` stops. */
  allowed: () => number;
  spend: (calls: number) => void;
  /** The service may not have counted the other calls in flight yet. */
  update: (quota: Quota | undefined, othersInFlight: number) => void;
  /** Pauses until the next window, by the `Retry-After` of the errors. */
  rest: (errors: DeckhandError[]) => void;
  wake: () => void;
};

const WINDOW_MILLISECONDS = 60_000;

export function makePace(onNextWindow: () => void): Pace {
  let limit = Number.POSITIVE_INFINITY;
  let left = limit;
  let isResting = false;
  let isProbing = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function wake(): void {
    clearTimeout(timer);
    timer = undefined;
    isResting = false;
  }

  function nextWindow(): void {
    wake();
    left = limit;
    onNextWindow();
  }

  return {
    wake,
    allowed: () => {
      if (isResting) return 0;
      if (left > 0) return left;
      // Sends one call: its 429 says when the window ends, and does not count.
      if (!isProbing) return 1;
      timer ??= setTimeout(nextWindow, WINDOW_MILLISECONDS);
      return 0;
    },
    spend: (calls) => {
      isProbing ||= left <= 0;
      left -= calls;
    },
    update: (quota, othersInFlight) => {
      isProbing = false;
      if (!quota) return;
      limit = quota.limit;
      left = quota.remaining - othersInFlight;
    },
    rest: (errors) => {
      wake();
      isResting = true;
      timer = setTimeout(nextWindow, millisecondsBefore(0, errors));
    },
  };
}
