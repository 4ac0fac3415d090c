import type { DeckhandError } from '../../../../client/client.ts';

export type Change<Shown> = {
  send: () => Promise<unknown>;
  /** What is shown with this change. `result` is that of `send`, once it is saved. */
  apply: (shown: Shown, result?: unknown) => Shown;
  /** Called when it is saved. */
  done?: (result: unknown) => void;
  /** The card that it moves: its next change replaces this one if it was not sent yet. */
  card?: number;
};

type Page<Shown> = {
  load: () => Promise<Shown>;
  show: (shown: Shown) => void;
  fail: (error: DeckhandError, isChange: boolean) => void;
  /** Whether two states are the same for people, to tell if a change without a response was saved. */
  isSame: (one: Shown, other: Shown) => boolean;
  signal: AbortSignal;
};

type Waiting<Shown> = Change<Shown> & { end: (error?: DeckhandError) => void };

/** Shows changes at once, sends them one after another, and takes back those that fail. */
export function changesOf<Shown>({ load, show, fail, isSame, signal }: Page<Shown>) {
  /** As the service has it. */
  let saved: Shown | undefined;
  /** On the screen, but not saved yet. */
  const waiting: Waiting<Shown>[] = [];
  let running: Promise<void> | undefined;
  /** Somebody else changed something since it was read last. */
  let isOutdated = false;

  const draw = () => {
    if (saved !== undefined && !signal.aborted) show(waiting.reduce<Shown>((shown, { apply }) => apply(shown), saved));
  };

  const run = () => {
    running ??= sendAndLoad().finally(() => {
      running = undefined;
    });
    return running;
  };

  async function sendAndLoad(): Promise<void> {
    let failure: { lost?: Change<Shown> | undefined } | undefined;
    do {
      // Goes on after another board was opened: a change is saved, or people are told that it is not.
      while (waiting[0]) failure = (await sendFirst(waiting[0])) ?? failure;
      isOutdated = false;
      if (signal.aborted) return;
      try {
        saved = await load();
        draw();
      } catch (thrown) {
        const undone = takeBack(waiting.length, thrown as DeckhandError);
        if (!failure && !signal.aborted) fail(thrown as DeckhandError, undone > 0);
        return;
      }
    } while ((waiting.length > 0 || isOutdated) && !signal.aborted);
    const { lost } = failure ?? {};
    if (lost && isSame(saved, lost.apply(saved))) lost.done?.(undefined);
  }

  /** Returns undefined if it is saved; else the change, if it may be saved and only the response is lost. */
  async function sendFirst(change: Waiting<Shown>) {
    try {
      const result = await change.send();
      waiting.shift();
      saved = saved && change.apply(saved, result);
      draw();
      change.end();
      change.done?.(result);
    } catch (thrown) {
      const error = thrown as DeckhandError;
      // Without a connection, later changes would fail, too.
      const undone = takeBack(error.data ? 1 : waiting.length, error);
      fail(error, true);
      return { lost: !error.data && undone === 1 && change.card !== undefined ? change : undefined };
    }
  }

  function takeBack(count: number, error: DeckhandError): number {
    const undone = waiting.splice(0, count);
    draw();
    for (const { end } of undone) end(error);
    return undone.length;
  }

  return {
    draw,
    load: run,
    refresh: () => {
      isOutdated = true;
      return run();
    },
    /** For what another part of the page has saved. */
    patch: (apply: (shown: Shown) => Shown) => {
      // What is being read may be older.
      if (running) isOutdated = true;
      saved = saved && apply(saved);
      draw();
    },
    /** Resolves to the error if the change was not saved. */
    make: (change: Change<Shown>) =>
      new Promise<DeckhandError | undefined>((end) => {
        const isSameCard = change.card !== undefined && waiting.at(-1)?.card === change.card;
        // The first one may have been sent.
        if (isSameCard && waiting.length > 1) waiting.pop()?.end();
        waiting.push({ ...change, end });
        draw();
        run();
      }),
  };
}
