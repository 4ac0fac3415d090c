import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import promises from 'node:timers/promises';

/** A process of the service, from its start to its end; several live in this process. */
export type Life = { node: string; holder: string; isDead: boolean; died: Promise<never>; end: (why: Error) => void };

/** What a node does: a call, or its work. Time is virtual inside of tasks, and real outside. */
export type Task = { life: Life; name: string };
export const tasks = new AsyncLocalStorage<Task>();

export function makeLife(node: string, number: number): Life {
  const { promise: died, reject: fail } = Promise.withResolvers<never>();
  died.catch(() => undefined);
  const end = (why: Error) => {
    life.isDead = true;
    fail(why);
    for (const timer of waiting) {
      if (timer.task.life !== life) continue;
      waiting.delete(timer);
      timer.drop?.(why);
    }
  };
  const life: Life = { node, holder: `${node}${number}`, isDead: false, died, end };
  return life;
}

type Timer = {
  at: number;
  number: number;
  every: number | undefined;
  task: Task;
  fire: () => void;
  drop?: ((why: Error) => void) | undefined;
};

const START = Date.UTC(2026, 0, 1);
let now = START;
let made = 0;
const waiting = new Set<Timer>();

export const virtualNow = () => now;
export const setVirtualNow = (milliseconds: number) => {
  now = milliseconds;
};

/** The next timer; nodes that ended have none. */
export function nextTimer(): Timer | undefined {
  let next: Timer | undefined;
  for (const timer of waiting) {
    if (!next || timer.at < next.at || (timer.at === next.at && timer.number < next.number)) next = timer;
  }
  return next;
}

export function fireTimer(timer: Timer): void {
  if (timer.every === undefined) waiting.delete(timer);
  else timer.at += timer.every;
  tasks.run(timer.task, timer.fire);
}

function addTimer(fire: () => void, milliseconds = 0, isRepeated = false, drop?: Timer['drop']): Timer & Handle {
  const after = Math.max(1, Math.ceil(milliseconds));
  const timer = {
    at: now + after,
    number: ++made,
    every: isRepeated ? after : undefined,
    task: tasks.getStore()!,
    drop,
    fire,
  };
  if (timer.task.life.isDead) drop?.(new Error('The node has ended.'));
  else waiting.add(timer);
  const handle = { ref: () => whole, unref: () => whole, hasRef: () => true };
  const whole: Timer & Handle = Object.assign(timer, handle);
  return whole;
}
type Handle = { ref: () => unknown; unref: () => unknown; hasRef: () => boolean };

/** Replaces timers, `Date` and `performance.now` of all modules; what runs outside of tasks keeps the real ones. */
export function installTime(): void {
  const real = { ...globalThis, setTimeout, setInterval, clearTimeout, clearInterval };
  const pause = promises.setTimeout;
  const clearBy = (clear: (timer: any) => void) => (timer: any) => {
    if (!waiting.delete(timer)) clear(timer);
  };
  const setBy =
    (set: (...call: any[]) => unknown, isRepeated: boolean) =>
    (fire: (...values: unknown[]) => void, milliseconds?: number, ...values: unknown[]) =>
      tasks.getStore() ? addTimer(() => fire(...values), milliseconds, isRepeated) : set(fire, milliseconds, ...values);
  Object.assign(globalThis, {
    setTimeout: setBy(real.setTimeout, false),
    setInterval: setBy(real.setInterval, true),
    clearTimeout: clearBy(real.clearTimeout),
    clearInterval: clearBy(real.clearInterval),
  });
  promises.setTimeout = ((milliseconds?: number, value?: unknown, options?: object) =>
    tasks.getStore()
      ? // Rejected with the end of its node, so that it releases what it holds.
        new Promise<unknown>((resolve, reject) => addTimer(() => resolve(value), milliseconds, false, reject))
      : pause(milliseconds, value, options)) as typeof pause;
  syncBuiltinESMExports();

  const monotonic = performance.now.bind(performance);
  performance.now = () => (tasks.getStore() ? now - START : monotonic());
  const RealDate = Date;
  const clock = RealDate.now;
  RealDate.now = () => (tasks.getStore() ? now : clock());
  globalThis.Date = new Proxy(RealDate, {
    construct: (_, values, target) =>
      Reflect.construct(RealDate, values.length === 0 ? [RealDate.now()] : values, target),
  });
}
