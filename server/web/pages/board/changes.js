import { hasSamePlaces } from './places.js';

/** @import { Board } from './boardView.js' */
/** @typedef {import('../client.js').DeckhandError} DeckhandError */

/**
 * @typedef {object} Change
 * @property {() => Promise<any>} send
 * @property {(board: Board, result?: any) => Board} apply returns the board with this change; `result` is that of `send`
 * @property {string} done the message when it is saved
 * @property {number} [card] the card that it moves or deletes: its next change replaces this one if it was not sent yet
 */

/**
 * Shows the changes of one board at once, sends them one after another, and undoes those that fail.
 * @param {object} page
 * @param {() => Promise<Board>} page.load
 * @param {(board: Board) => void} page.show
 * @param {(text: string) => void} page.showMessage
 * @param {(error: DeckhandError, isChange: boolean) => void} page.fail
 * @param {AbortSignal} page.signal aborts when the session ends, so that nothing is sent as the next user
 */
export function changesOf({ load, show, showMessage, fail, signal }) {
  /** As the service has it. @type {Board | undefined} */
  let saved;
  /** On the screen, but not saved yet. @type {(Change & { end: (error?: DeckhandError) => void })[]} */
  const waiting = [];
  /** @type {Promise<void> | undefined} */
  let running;
  /** Somebody else changed the board since it was read last. */
  let isOutdated = false;

  const draw = () => {
    if (saved && !signal.aborted) show(waiting.reduce((board, { apply }) => apply(board), saved));
  };

  const run = () => {
    running ??= sendAndLoad().finally(() => {
      running = undefined;
    });
    return running;
  };

  async function sendAndLoad() {
    /** @type {{ lost?: Change | undefined } | undefined} */
    let failure;
    do {
      while (waiting[0] && !signal.aborted) failure = (await sendFirst(waiting[0])) ?? failure;
      isOutdated = false;
      try {
        saved = await load();
        draw();
      } catch (thrown) {
        const error = /** @type {DeckhandError} */ (thrown);
        const undone = undo(waiting.length, error);
        if (!failure) fail(error, undone > 0);
        return;
      }
    } while ((waiting.length > 0 || isOutdated) && !signal.aborted);
    const { lost } = failure ?? {};
    if (lost && hasSamePlaces(saved, lost.apply(saved))) showMessage(lost.done);
  }

  /**
   * Returns undefined if it is saved; else the change, if it may be saved and only the response is lost.
   * @param {typeof waiting[number]} change
   */
  async function sendFirst(change) {
    try {
      const result = await change.send();
      waiting.shift();
      saved = saved && change.apply(saved, result);
      draw();
      change.end();
      if (waiting.length === 0) showMessage(change.done);
    } catch (thrown) {
      const error = /** @type {DeckhandError} */ (thrown);
      // Without a connection, later changes would fail, too.
      const undone = undo(error.data ? 1 : waiting.length, error);
      fail(error, true);
      const isLost = !error.data && undone === 1 && change.card !== undefined;
      return { lost: isLost ? change : undefined };
    }
  }

  /**
   * @param {number} count
   * @param {DeckhandError} error
   */
  function undo(count, error) {
    const undone = waiting.splice(0, count);
    draw();
    for (const { end } of undone) end(error);
    return undone.length;
  }

  return {
    draw,
    /** Returns whether there is something to show. */
    load: async () => {
      await run();
      return saved !== undefined;
    },
    /**
     * Reads the board again, if it is shown or being read.
     * @param {boolean} isShown
     */
    refresh: (isShown) => {
      isOutdated = true;
      if (isShown) run();
    },
    /**
     * Returns the error if the change was not saved.
     * @param {Change} change
     * @returns {Promise<DeckhandError | undefined>}
     */
    make: (change) =>
      new Promise((end) => {
        const isSameCard = change.card !== undefined && waiting.at(-1)?.card === change.card;
        // The first one may have been sent.
        if (isSameCard && waiting.length > 1) waiting.pop()?.end();
        waiting.push({ ...change, end });
        draw();
        run();
      }),
  };
}
