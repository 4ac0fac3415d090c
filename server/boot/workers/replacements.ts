/** A worker that ends sooner has a problem that a new one will have, too. */
const SHORT_LIFE_MILLISECONDS = 10_000;
const DELAYS_MILLISECONDS = [0, 1000, 2000, 4000, 8000, 16_000, 30_000];

/** How long to wait before a worker is replaced: longer each time, while all end soon after their start. */
export function makeReplacements() {
  let shortLives = 0;
  return {
    /** Undefined if there were too many in a row and no other worker serves, as one does during a database outage. */
    delayAfter: (livedMilliseconds: number, isAnotherReady: boolean): number | undefined => {
      shortLives = livedMilliseconds < SHORT_LIFE_MILLISECONDS ? shortLives + 1 : 0;
      const delay = DELAYS_MILLISECONDS[Math.max(0, shortLives - 1)];
      return delay ?? (isAnotherReady ? DELAYS_MILLISECONDS.at(-1) : undefined);
    },
  };
}
