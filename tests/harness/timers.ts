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

const TIMERS = [
  ['setTimeout', 'clearTimeout'],
  ['setInterval', 'clearInterval'],
] as const;

/**
 * The timers of the calling test wait for `vi.advanceTimersByTime`, until its end or a call of the result. Services in the same
 * process keep theirs, which are not counted by `vi.getTimerCount` either.
 */
export function fakeTimers(...clocks: ('Date' | 'performance')[]): () => void {
  vi.useFakeTimers({ toFake: [...TIMERS.flat(), ...clocks] });
  const test = { start: undefined };
  ofTest.enterWith(test);
  const restore = TIMERS.map(([start, clear]) => keepForeign(start, clear, () => ofTest.getStore() === test));
  const end = () => {
    for (const one of restore.splice(0)) one();
    vi.useRealTimers();
  };
  onTestFinished(end);
  return end;
}

/** Timers that are not of the test start as if nothing was faked. Returns what takes this back. */
function keepForeign(
  start: (typeof TIMERS)[number][0],
  clear: (typeof TIMERS)[number][1],
  isOfTest: () => boolean,
): () => void {
  const faked = { start: globalThis[start], clear: globalThis[clear] };
  const real = REAL[start];
  const own = new WeakSet<object>();
  globalThis[start] = ((...parts: Parameters<Start>) => {
    if (!isOfTest()) return real.start(...parts);
    const timer = faked.start(...parts);
    own.add(timer);
    return timer;
  }) as never;
  globalThis[clear] = ((timer?: NodeJS.Timeout) =>
    (timer && own.has(timer) ? faked.clear : real.clear)(timer)) as never;
  return () => {
    globalThis[start] = faked.start as never;
    globalThis[clear] = faked.clear as never;
  };
}

const REAL = {
  setTimeout: { start: setTimeout, clear: clearTimeout },
  setInterval: { start: setInterval, clear: clearInterval },
};
