import { AsyncLocalStorage } from 'node:async_hooks';
import { onTestFinished, vi } from 'vitest';

type Start = (work: () => void, milliseconds: number) => NodeJS.Timeout;

const ofTest = new AsyncLocalStorage<{ start: Start | undefined }>();

/** Starts a timer, whatever a test does with others. */
export const realSetTimeout = globalThis.setTimeout;

/** Starts the timers of the calling test in another way, until its end; services in the same process keep their timers. */
export function replaceTimers(start: Start): void {
  const replaced: { start: Start | undefined } = { start };
  ofTest.enterWith(replaced);
  onTestFinished(() => {
    replaced.start = undefined;
  });
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, milliseconds = 0, ...values: []) => {
    const begin = ofTest.getStore()?.start;
    return begin ? begin(() => work(...values), milliseconds) : realSetTimeout(work, milliseconds, ...values);
  }) as typeof setTimeout);
}
