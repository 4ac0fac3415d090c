import { type ClockMemory, readClock } from '../../../client/testing/clock.ts';

/** Makes `Date` of this thread follow the clock, and so `now()` of PGlite, which calls `Date.now`. */
export function followClock(memory: ClockMemory): void {
  const RealDate = Date;
  const realNow = Date.now;
  const now = () => readClock(memory) ?? realNow();

  RealDate.now = now;
  const FollowingDate = new Proxy(RealDate, {
    construct: (_, values, target) => Reflect.construct(RealDate, values.length === 0 ? [now()] : values, target),
    apply: () => new RealDate(now()).toString(),
  });
  RealDate.prototype.constructor = FollowingDate;
  globalThis.Date = FollowingDate;
  limitTimers();
}

/** Longer timers fire at once. */
const LONGEST_TIMER_MILLISECONDS = 2 ** 31 - 1;

/** PGlite sets timers by the clock: after the clock was set back, they may be months away; after it was moved on, negative. */
function limitTimers(): void {
  globalThis.setTimeout = new Proxy(setTimeout, {
    apply: (set, self, [work, milliseconds = 0, ...parts]) =>
      Reflect.apply(set, self, [work, Math.max(0, Math.min(milliseconds, LONGEST_TIMER_MILLISECONDS)), ...parts]),
  });
}
