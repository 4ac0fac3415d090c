import type { Call, Stopwatch } from './call.ts';
import type { CallOptions } from './calls.ts';
import { DeckhandError, timeoutError } from './errors.ts';

/** A mutation may be a sync or push to thousands of projects. */
const DEFAULT_MILLISECONDS = { query: 60_000, mutation: 300_000 };

/** Runs a call with its own signal, so that no listeners stay on the caller's, which many calls may share. */
export async function withTimeOut<Result>(
  { signal, timeoutMilliseconds }: CallOptions,
  begun: Omit<Call, 'signal' | 'stopwatch'>,
  work: (call: Call) => Promise<Result>,
): Promise<Result> {
  const isDefault = timeoutMilliseconds === undefined;
  const milliseconds = isDefault ? DEFAULT_MILLISECONDS[begun.kind] : validTimeOut(timeoutMilliseconds);
  const controller = new AbortController();
  const { run, rest } = makeStopwatch(milliseconds, controller.signal, () =>
    controller.abort(timeoutError(milliseconds, call)),
  );
  const stopwatch = { run, rest, wait: isDefault ? rest : run };
  const call: Call = { ...begun, signal: controller.signal, stopwatch };
  const end = () => controller.abort(signal?.reason);
  signal?.addEventListener('abort', end, { once: true });
  try {
    stopwatch.wait();
    return await untilAborted(work(call), controller.signal);
  } finally {
    rest();
    signal?.removeEventListener('abort', end);
  }
}

function makeStopwatch(milliseconds: number, signal: AbortSignal, onEnd: () => void): Pick<Stopwatch, 'run' | 'rest'> {
  let left = milliseconds;
  let running: { since: number; timer: ReturnType<typeof setTimeout> } | undefined;
  return {
    run: () => {
      if (signal.aborted) return;
      running ??= { since: performance.now(), timer: setTimeout(onEnd, left) };
    },
    rest: () => {
      if (!running) return;
      clearTimeout(running.timer);
      left = Math.max(0, left - (performance.now() - running.since));
      running = undefined;
    },
  };
}

/** The maximum of `setTimeout`, 24 days; longer timers fire at once. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

export const TIME_OUTS = `from 1 to ${LONGEST_TIMEOUT}`;

export const isTimeOut = (value: unknown) => typeof value === 'number' && value > 0 && value <= LONGEST_TIMEOUT;

function validTimeOut(milliseconds: number): number {
  if (isTimeOut(milliseconds)) return milliseconds;
  throw new DeckhandError(`timeoutMilliseconds must be ${TIME_OUTS}.`);
}

export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  try {
    await untilAborted(passed, signal);
  } finally {
    clearTimeout(timer);
  }
}

export function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
