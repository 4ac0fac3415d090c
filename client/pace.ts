import type { DeckhandError } from './errors.ts';
import { millisecondsBefore } from './retry.ts';

/** How many calls the rate limit still allows, as far as the service has told. */
export type Pace = {
  /** For a call that waits: `wake` ends the timer that it may start. */
  allowed: () => number;
  spend: (calls: number) => void;
  /** Takes what an answer says, if one came; the other calls in flight may not be counted in it yet. */
  hear: (quota: Quota | undefined, othersInFlight: number) => void;
  /** Waits for the next window, which `Retry-After` of refused calls tells. */
  rest: (errors: DeckhandError[]) => void;
  /** Waits no longer. */
  wake: () => void;
};

/** `X-RateLimit-Limit` and `X-RateLimit-Remaining`. */
export type Quota = { limit: number; remaining: number };

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
    isProbing = false;
    onNextWindow();
  }

  return {
    wake,
    allowed: () => {
      if (isResting) return 0;
      if (left > 0) return left;
      // Only the refusal of a call tells when the window ends; the service does not count it.
      if (!isProbing) return 1;
      timer ??= setTimeout(nextWindow, WINDOW_MILLISECONDS);
      return 0;
    },
    spend: (calls) => {
      isProbing ||= left <= 0;
      left -= calls;
    },
    hear: (quota, othersInFlight) => {
      isProbing = false;
      if (!quota) return;
      limit = quota.limit;
      left = quota.remaining - othersInFlight;
    },
    rest: (errors) => {
      if (isResting) return;
      wake();
      isResting = true;
      timer = setTimeout(nextWindow, millisecondsBefore(0, errors));
    },
  };
}
