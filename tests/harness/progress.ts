import type { Reporter } from 'vitest/node';

const PAUSE_MILLISECONDS = 5000;

/** Prints how many tests are done every few seconds where no terminal shows it, so that a long suite does not look stuck. */
export default class Progress implements Reporter {
  #done = 0;
  #printedAt = performance.now();

  onTestCaseResult(): void {
    this.#done++;
    if (process.stdout.isTTY || performance.now() - this.#printedAt < PAUSE_MILLISECONDS) return;
    this.#printedAt = performance.now();
    console.log(`   ${this.#done} tests done`);
  }
}
