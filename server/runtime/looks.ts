/** When to look again: after this pause, or when woken if it is null; but never sooner after the last look than `shortest`. */
export type NextPause = { pause: number | null; shortest: number };

/** Looks for changes when it is woken, and otherwise after pauses. A look must not throw. */
export function makeLooks(look: () => Promise<NextPause>) {
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let isWoken = false;
  let isStopped = false;
  let nextAllowed = 0;
  /** The pause of a beginning during a look. */
  let begunPause: number | null = null;

  return {
    /** Looks at once, or as soon as the pause after the last look allows it. */
    wake: () => {
      if (looking) isWoken = true;
      else lookIn(0);
    },
    /** Begins to look after this pause, unless it has begun. */
    begin: (milliseconds: number) => {
      if (looking) begunPause = milliseconds;
      else if (!timer) lookIn(milliseconds);
    },
    /** Looks no more until it begins again. */
    pause: () => {
      clearTimeout(timer);
      timer = undefined;
    },
    /** Looks never again, and waits for the look that is under way. */
    stop: async (): Promise<void> => {
      isStopped = true;
      clearTimeout(timer);
      await looking;
    },
  };

  function lookIn(milliseconds: number): void {
    if (isStopped) return;
    clearTimeout(timer);
    const pause = Math.max(milliseconds, nextAllowed - performance.now(), 0);
    timer = setTimeout(() => {
      looking = lookOnce();
    }, pause).unref();
  }

  async function lookOnce(): Promise<void> {
    timer = undefined;
    isWoken = false;
    const begun = performance.now();
    const { pause, shortest } = await look();
    nextAllowed = begun + shortest;
    looking = undefined;
    const next = isWoken ? 0 : (pause ?? begunPause);
    begunPause = null;
    if (next !== null) lookIn(next);
  }
}
